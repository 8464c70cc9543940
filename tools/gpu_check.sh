#!/bin/bash
# Runs every GPU test and every CUDA target and writes tests/gpu/record.json: the machine, what passed, and the hashes of
# the device sources it covered. A test without GPU checks that the committed record still matches the sources. Beside it,
# engine.json has the speed of the 20b shape.
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
# One test of each kernel: under these tools the longer ones take many minutes. Nothing is timed, so they run at once.
checked='SkinnyProductOnGpu.products*:PackOnGpu.*:RowsOnGpu.*:RouterOnGpu.chooses*:SampleOnGpu.a_mask*:SampleOnGpu.ties*'
checked+=':RopeKvOnGpu.*:DecodeAttentionOnGpu.*sink*:RopeDecodeAttentionOnGpu.takes_one*:PrefillAttentionOnGpu.*sink*'
checked+=':NaiveAttentionOnGpu.takes*:WideProductOnGpu.*epilogue*:PlainProductOnGpu.products*:UnfusedOnGpu.*'
filter='*gpu*:*Gpu*:*Cuda*:*Cublas*:*Nvml*:*cuda*'
echo "gpu-check: kernels under memcheck, racecheck and initcheck; tests without clocks; the engine by PTX for sm_80 alone"
declare -A running
for tool in memcheck racecheck initcheck; do
  compute-sanitizer --tool $tool --error-exitcode 9 "$build/tests/kernels_test" --gtest_brief=1 \
    --gtest_filter="$checked" > "$results/$tool.log" 2>&1 &
  running[$tool]=$!
done
CUDA_FORCE_PTX_JIT=1 "$build/tests/engine_test" --gtest_brief=1 --gtest_filter='CudaGoldenOnGpu.choices*' \
  > "$results/ptx.log" 2>&1 &
running[ptx]=$!
for program in core_test kernels_test engine_test; do
  "$build/tests/$program" --gtest_brief=1 --gtest_filter="$filter" --gtest_output="json:$results/$program.json" \
    > "$results/$program.log" 2>&1 &
  running[$program]=$!
done
for name in "${!running[@]}"; do
  wait "${running[$name]}" || status=1
  echo "gpu-check: $name"
  tail -25 "$results/$name.log"
done

for program in lab_test whole_test; do
  echo "gpu-check: $program"
  "$build/tests/$program" --gtest_brief=1 --gtest_filter="$filter" --gtest_output="json:$results/$program.json" || status=1
done

echo "gpu-check: all CUDA targets"
# Word splitting of the options is meant.
"$build/gauntlet" run --suite all --backend cuda --profile minimal --artifacts-dir "$artifacts" \
  ${GPU_CHECK_RUN_OPTIONS:-} || status=1

mkdir -p "$(dirname "$record")"
tools/gpu_record.sh "$results" "$(ls -d "$artifacts"/2* | tail -1)" "$status" > "$record"
echo "gpu-check: wrote $record (status $status)"

echo "gpu-check: the engine at the 20b shape"
bench() { "$build/gauntlet" bench --weights random --shape gpt-oss-20b --format json "$@"; }
{
  echo '['
  bench --batch 1,8,64 --context 512 --prefill 512 --decode 128 || status=1
  echo ','
  bench --batch 1 --context 8192 --prefill 512 --decode 128 || status=1
  echo ','
  bench --batch 1 --context 0 --prefill 2048,8192 --decode 128 || status=1
  echo ','
  bench --batch 32 --context 0 --prefill 512 --decode 128 || status=1
  echo ']'
} > "$(dirname "$record")/engine.json"
exit $status
