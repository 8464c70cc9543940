#!/bin/bash
# Does the committed GPU record still cover the device sources? Fails with the names of those that changed since.
#   check_record.sh <source folder>
set -euo pipefail
cd "$1"
record=tests/gpu/record.json
grep -q '"ok": true' $record || { echo "$record is not of a run that passed" >&2; exit 1; }
recorded=$(sed -n 's/^    "\(.*\)": "\([0-9a-f]\{64\}\)",\{0,1\}$/\2  \1/p' $record)
[ -n "$recorded" ] || { echo "$record names no sources" >&2; exit 1; }
if ! changed=$(diff <(echo "$recorded") <(tools/source_hashes.sh)); then
  echo "the GPU has not seen these as they are now; run 'make gpu-check' on one and commit $record:" >&2
  echo "$changed" | sed -n 's/^[<>] [0-9a-f]*  /  /p' | sort -u >&2
  exit 1
fi
echo "the record covers all $(echo "$recorded" | wc -l) device sources"
