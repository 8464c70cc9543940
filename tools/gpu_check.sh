#!/bin/bash
# Runs on a GPU what tests/gpu/record.json does not cover, and records it, unit by unit (docs/gpu-record.md).
#   tools/gpu_check.sh [--all] [--only PART-OF-A-NAME] [--seconds N] [--record FILE] <folder of the programs>
# Needs the sources and the programs that were built from them, no compiler. Exit code 0: all is covered and passed,
# 1: something failed, 4: the rest comes with the next call. Runs and logs are kept in $GPU_CHECK_ARTIFACTS (default:
# artifacts); $GPU_CHECK_RUN_OPTIONS go to `gauntlet run`.
set -euo pipefail
export LC_ALL=C
root=$(cd "$(dirname "$0")/.." && pwd)
seconds=540 record=$root/tests/gpu/record.json plan_options=()
while [[ ${1:-} == --* ]]; do
  case $1 in
    --all) plan_options+=(--all); shift ;;
    --only) plan_options+=(--only "${2:?}"); shift 2 ;;
    --seconds) seconds=${2:?}; shift 2 ;;
    --record) record=$(realpath "${2:?}"); shift 2 ;;
    *) echo "gpu-check: there is no option $1" >&2; exit 2 ;;
  esac
done
programs=$(realpath "${1:?say in which folder the programs are}")
lanes=6
unit_limit_s=420  # a suite that takes longer hangs

say() { echo "gpu-check: $*"; }
left() { echo $((seconds - SECONDS)); }
limit_of_now() { echo $(($(left) < unit_limit_s ? $(left) : unit_limit_s)); }
now_us() { echo "${EPOCHREALTIME/./}"; }
since() { local us=$(($(now_us) - $1)); printf '%d.%02d' $((us / 1000000)) $((us % 1000000 / 10000)); }
program() { if [ -e "$programs/$1" ]; then echo "$programs/$1"; else echo "$programs/tests/$1"; fi; }

machine=$(nvidia-smi --query-gpu=name,driver_version --format=csv,noheader | head -1 | sed 's/, /, driver /') || machine=
[ -n "$machine" ] || { echo "gpu-check: nvidia-smi names no GPU" >&2; exit 3; }
run=$(date -u +%Y%m%d-%H%M%S)-$$
artifacts=$(realpath -m "${GPU_CHECK_ARTIFACTS:-$root/artifacts}")/gpu-check-$run
mkdir -p "$artifacts"
cd "$root"
# Children run in the background and are waited for, because bash handles signals only then.
trap 'kill $(jobs -p) 2> /dev/null || true' EXIT
trap 'exit 143' TERM INT

log_of() { echo "$artifacts/${1// /-}.log"; }
units() { "$(program gpu_units)" --root "$root" --record "$record" "$@"; }
take() { units take --programs "$programs" --machine "$machine" --run "$run" "$@"; }

units plan --programs "$programs" --seconds "$seconds" --lanes $lanes "${plan_options[@]}" > "$artifacts/plan"
say "$(wc -l < "$artifacts/plan") units on $machine"
planned() { awk -F'\t' -v kinds=" $* " 'index(kinds, " " $1 " ")' "$artifacts/plan"; }

# Becomes the test program; 124 is the exit code of one that was stopped.
become_tests() {  # kind program tool filter name limit
  local command=("$(program "$2")" --gtest_brief=1 "--gtest_filter=$4" "--gtest_output=json:$(log_of "$5").json")
  [ "$3" = - ] || command=(compute-sanitizer --tool "$3" --error-exitcode 9 "${command[@]}")
  [ "$1" != ptx ] || command=(env CUDA_FORCE_PTX_JIT=1 "${command[@]}")
  exec timeout --kill-after=5 "$6" "${command[@]}" > "$(log_of "$5")" 2>&1
}

declare -A name_of=() began_at=() limit_of=()
start_tests() {  # kind program tool filter name
  local limit
  limit=$(limit_of_now)
  ((limit > 0)) || return 0
  become_tests "$@" "$limit" < /dev/null &
  name_of[$!]=$5 began_at[$!]=$(now_us) limit_of[$!]=$limit
}
# A sanitizer's words stand far above the end of a log.
what_it_said() {
  { grep -aE 'Race reported|[Hh]azard|Invalid |Uninitialized |SUMMARY' "$1" || true; } | sort | uniq -c | sort -rn | head -8
  tail -25 "$1"
}
finish_tests() {
  local pid code=0
  wait -n -p pid "${!name_of[@]}" || code=$?
  local name=${name_of[$pid]}
  unset "name_of[$pid]"
  if [[ $code == 124 || $code == 137 ]] && ((limit_of[$pid] < unit_limit_s)); then
    say "$name was cut off"  # which says nothing about it: it comes again
    return
  fi
  take --unit "$name" --gtest "$(log_of "$name").json" --exit-code $code --seconds "$(since "${began_at[$pid]}")" || true
  [ $code -eq 0 ] || what_it_said "$(log_of "$name")"
}
run_tests() {  # at once, kinds...
  local at_once=$1 lines line fields
  shift
  mapfile -t lines < <(planned "$@")
  for line in "${lines[@]}"; do
    IFS=$'\t' read -ra fields <<< "$line"
    start_tests "${fields[@]}"
    while ((${#name_of[@]} >= at_once)); do finish_tests; done
  done
  while ((${#name_of[@]})); do finish_tests; done
}

# One run for all targets, so that they share its ceilings and its report. It saves its results after each target, and
# they are taken from there while it goes on; only when there are new ones, because what it does is timed.
take_results() {
  local results taken=$artifacts/taken.json
  for results in "$artifacts"/*/results.json; do
    if [ -e "$results" ] && ! cmp -s "$results" "$taken"; then
      cp "$results" "$taken"
      take --results "$taken" || true
    fi
  done
}
run_targets() {
  local targets code=0
  mapfile -t targets < <(planned target | cut -f4)
  ((${#targets[@]} && $(left) > 0)) || return 0
  # Word splitting of the options is meant.
  timeout --kill-after=5 $(($(left) + 40)) "$(program gauntlet)" run --targets "${targets[@]}" --backend cuda \
    --profile minimal --suite-timeout "$(left)" --artifacts-dir "$artifacts" ${GPU_CHECK_RUN_OPTIONS:-} \
    > "$artifacts/targets.log" 2>&1 < /dev/null &
  local runner=$!
  while kill -0 $runner 2> /dev/null; do
    sleep 0.5
    take_results
  done
  wait $runner || code=$?
  [ $code -eq 0 ] || { say "gauntlet run ended with exit code $code"; tail -25 "$artifacts/targets.log"; }
  take_results
}

bench() {
  timeout --kill-after=5 "$(limit_of_now)" "$(program gauntlet)" bench --weights random --shape gpt-oss-20b \
    --format json "$@"
}
bench_all() {
  echo '[' && bench --batch 1,8,64 --context 512 --prefill 512 --decode 128 &&
    echo ',' && bench --batch 1 --context 8192 --prefill 512 --decode 128 &&
    echo ',' && bench --batch 1 --context 0 --prefill 2048,8192 --decode 128 &&
    echo ',' && bench --batch 32 --context 0 --prefill 512 --decode 128 && echo ']'
}
run_bench() {
  local name began code=0
  name=$(planned bench | cut -f5)
  [ -n "$name" ] && (($(left) > 0)) || return 0
  began=$(now_us)
  bench_all > "$artifacts/engine.json" 2> "$(log_of "$name")" < /dev/null &
  wait $! || code=$?
  if [ $code -eq 0 ]; then
    cp "$artifacts/engine.json" "$(dirname "$record")/engine.json"
    take --unit "$name" --status passed --seconds "$(since "$began")"
  elif (($(left) <= 0)); then
    say "$name was cut off"
  else
    take --unit "$name" --status failed --reason "gauntlet bench: exit code $code" --seconds "$(since "$began")"
    tail -25 "$(log_of "$name")"
  fi
}

run_tests $lanes test sabotage sanitizer ptx
run_tests 1 timed
run_targets
run_bench
say "took $SECONDS s; logs and runs are in $artifacts"
units check
