#!/bin/bash
# Prints the GPU record as JSON: tools/gpu_record.sh <folder of gtest JSON files> <run folder> <status>.
set -euo pipefail
cd "$(dirname "$0")/.."
results=$1 run=$2 status=$3
count() { grep -c "\"status\": \"$1\"" "$run/results.json" || true; }
# gtest writes the totals of a program with two spaces of indentation.
total() { cat "$results"/*.json | sed -n "s/^  \"$1\": \([0-9]*\),$/\1/p" | awk '{n += $1} END {print n + 0}'; }
gpu=$(nvidia-smi --query-gpu=name,driver_version --format=csv,noheader | head -1)
cat <<EOT
{
  "gpu": "$gpu",
  "run_id": "$(basename "$run")",
  "ok": $([ "$status" -eq 0 ] && echo true || echo false),
  "tests": $(total tests),
  "test_failures": $(total failures),
  "targets": {"passed": $(count passed), "no_gain": $(count no_gain), "skipped": $(count skipped),
    "wrong": $(count wrong), "crashed": $(count crashed), "timed_out": $(count timed_out), "regressed": $(count regressed)},
  "sources": {
$(tools/source_hashes.sh | sed 's/^\([0-9a-f]*\)  \(.*\)$/    "\2": "\1"/; $!s/$/,/')
  }
}
EOT
