#!/bin/bash
# Runs every GPU test and every CUDA target and writes tests/gpu/record.json: the machine, what passed, and the hashes of
# the device sources it covered. A test without GPU checks that the committed record still matches the sources.
#   tools/gpu_check.sh <build folder> [<record>]
# Runs are kept in $GPU_CHECK_ARTIFACTS (default: artifacts); $GPU_CHECK_RUN_OPTIONS go to `gauntlet run`.
set -euo pipefail
cd "$(dirname "$0")/.."
build=${1:?say which build folder}
record=${2:-tests/gpu/record.json}
artifacts=${GPU_CHECK_ARTIFACTS:-artifacts}
results=$(mktemp -d)
trap 'rm -rf "$results"' EXIT

status=0
for program in core_test kernels_test engine_test lab_test whole_test; do
  echo "gpu-check: $program"
  "$build/tests/$program" --gtest_brief=1 --gtest_filter='*gpu*:*Gpu*:*Cuda*:*Cublas*:*Nvml*:*cuda*' \
    --gtest_output="json:$results/$program.json" || status=1
done
echo "gpu-check: all CUDA targets"
# Word splitting of the options is meant.
"$build/gauntlet" run --suite all --backend cuda --profile minimal --artifacts-dir "$artifacts" \
  ${GPU_CHECK_RUN_OPTIONS:-} || status=1

mkdir -p "$(dirname "$record")"
tools/gpu_record.sh "$results" "$(ls -d "$artifacts"/2* | tail -1)" "$status" > "$record"
echo "gpu-check: wrote $record (status $status)"
exit $status
