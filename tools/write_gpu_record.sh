#!/bin/bash
# Prints the GPU record as JSON: tools/write_gpu_record.sh <artifacts folder> <status>.
set -euo pipefail
artifacts=$1 status=$2
run=$(ls -d "$artifacts"/2* | tail -1)
# results.json is written with two spaces of indentation; the top-level facts are single lines.
field() { sed -n "s/^  \"$1\": \"\(.*\)\",\{0,1\}$/\1/p" "$run/manifest.json" | head -1; }
count() { grep -c "\"status\": \"$1\"" "$run/results.json" || true; }
tests() { cat "$artifacts"/*_test.json | sed -n 's/^  "tests": \([0-9]*\),$/\1/p' | awk '{n += $1} END {print n + 0}'; }
failures() { cat "$artifacts"/*_test.json | sed -n 's/^  "failures": \([0-9]*\),$/\1/p' | awk '{n += $1} END {print n + 0}'; }
gpu=$(nvidia-smi --query-gpu=name,driver_version --format=csv,noheader 2>/dev/null | head -1)
echo "{"
echo "  \"gpu\": \"$gpu\","
echo "  \"run_id\": \"$(field run_id)\","
echo "  \"ok\": $([ "$status" -eq 0 ] && echo true || echo false),"
echo "  \"tests\": $(tests),"
echo "  \"test_failures\": $(failures),"
echo "  \"targets\": {\"passed\": $(count passed), \"no_gain\": $(count no_gain), \"skipped\": $(count skipped), \"wrong\": $(count wrong), \"crashed\": $(count crashed), \"timed_out\": $(count timed_out), \"regressed\": $(count regressed)},"
echo "  \"sources\": {"
sed 's/^\([0-9a-f]*\)  \(.*\)$/    "\2": "\1"/; $!s/$/,/' "$artifacts/hashes"
echo "  }"
echo "}"
