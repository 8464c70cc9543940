#!/bin/bash
# What ranks of one GPU have to show, part by part, each within a time limit of its own (200 s in all):
#   tools/gpu_ranks.sh [--device cuda|cpu] [--model FOLDER] [--record FILE] [--limit SECONDS] <folder of the programs> [PART...]
# Parts: suites, sanitized, shape, lost, bench; and commands, which compares texts and is not among those of the 200 s.
# A line for each check, PASS, FAIL or SKIP with its figures; all of them go into the record, by default gpu_ranks.json. Exit code 0: none
# failed, 3: no GPU. --device cpu tries the script itself on ranks of CPUs. Processes that share a GPU run under MPS, which is started here.
set -uo pipefail
export LC_ALL=C OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
device=cuda record=$PWD/gpu_ranks.json model=() limit=
while [[ ${1:-} == --* ]]; do
  case $1 in
    --device) device=${2:?} ;;
    --model) model=(--model "$(realpath "${2:?}")") ;;
    --record) record=$(realpath -m "${2:?}") ;;
    --limit) limit=${2:?} ;;  # of each part that is run
    *) echo "gpu-ranks: there is no option $1" >&2; exit 2 ;;
  esac
  shift 2
done
[[ $device == cuda || $device == cpu ]] || { echo "gpu-ranks: ranks are of cuda or cpu, not of $device" >&2; exit 2; }
programs=$(realpath "${1:?say in which folder the programs are}")
shift
parts=("${@:-}")
[ -n "${parts[0]}" ] || parts=(suites sanitized shape lost bench)
declare -A limit_of=([suites]=50 [sanitized]=45 [shape]=35 [lost]=50 [bench]=20 [commands]=60)
for part in "${parts[@]}"; do
  [ -n "${limit_of[$part]:-}" ] || { echo "gpu-ranks: there is no part $part: ${!limit_of[*]}" >&2; exit 2; }
done
program() { for at in "$programs" "$programs/tests" "$programs/tests/serving"; do [ ! -x "$at/$1" ] || { echo "$at/$1"; return; }; done; echo "$1"; }
gauntlet=$(program gauntlet)
machine=$(nvidia-smi --query-gpu=name,driver_version --format=csv,noheader 2> /dev/null | head -1 | sed 's/, /, driver /')
[ $device = cpu ] || [ -n "$machine" ] || { echo "gpu-ranks: nvidia-smi names no GPU" >&2; exit 3; }
folder=$(mktemp -d)
own_mps=
cleanup() {
  kill $(jobs -p) 2> /dev/null
  stop_mps
  rm -rf "$folder"
}
trap cleanup EXIT
trap 'exit 143' TERM INT

start_mps() {
  [ -z "$own_mps" ] && [ $device = cuda ] && [ ! -e /tmp/nvidia-mps/control ] || return 0
  command -v nvidia-cuda-mps-control > /dev/null || return 0
  export CUDA_MPS_PIPE_DIRECTORY=$folder/mps CUDA_MPS_LOG_DIRECTORY=$folder/mps-log
  mkdir -p "$CUDA_MPS_PIPE_DIRECTORY" "$CUDA_MPS_LOG_DIRECTORY"
  if nvidia-cuda-mps-control -d; then own_mps=yes; return; fi
  unset CUDA_MPS_PIPE_DIRECTORY CUDA_MPS_LOG_DIRECTORY
  check_began=$(ms)
  report FAIL MPS "its daemon did not start"
}
stop_mps() {
  [ -n "$own_mps" ] || return 0
  echo quit | timeout 10 nvidia-cuda-mps-control > "$folder/mps.out" 2>&1
  own_mps=
  unset CUDA_MPS_PIPE_DIRECTORY CUDA_MPS_LOG_DIRECTORY
}
mps_clients() {
  [ -n "$own_mps" ] || return 0
  local server
  for server in $(echo get_server_list | timeout 5 nvidia-cuda-mps-control); do
    echo "get_client_list $server" | timeout 5 nvidia-cuda-mps-control
  done | grep -cE '^[0-9]+' || true
}

failures=0 part_began=0 check_began=0
ms() { echo $((${EPOCHREALTIME/./} / 1000)); }
left() { local s=$((limit_of[$part] - ($(ms) - part_began) / 1000)); echo $((s > 1 ? s : 1)); }
json_text() { tr '\n\t"\\' "   /" <<< "$1" | tr -cd '\40-\176' | sed 's/ *$//'; }
report() {  # verdict check figures
  local took_ms=$(($(ms) - check_began))
  printf '%s %s %s: %s (%d.%01d s)\n' "$1" "$part" "$2" "$3" $((took_ms / 1000)) $((took_ms % 1000 / 100))
  [ "$1" != FAIL ] || failures=$((failures + 1))
  printf '{"part": "%s", "check": "%s", "verdict": "%s", "figures": "%s", "ms": %d}\n' \
    "$part" "$(json_text "$2")" "$1" "$(json_text "$3")" $took_ms >> "$folder/checks"
}
# A command within what is left of the part's time, or a share of it; its output is in $out.
share=1
within() { check_began=$(ms); timeout --kill-after=5 $((($(left) + share - 1) / share)) "$@" > "$out" 2>&1 < /dev/null; }
out=$folder/out
why() { [ "$1" = 124 ] || [ "$1" = 137 ] && echo "not over within its limit" || echo "exit code $1: $(grep -avE '^$|^-+$' "$out" | tail -2)"; }
mpi() { within mpirun -n 2 --oversubscribe --bind-to none "$@"; }

tests() {  # name filter, of engine_test
  within "$(program engine_test)" --gtest_brief=1 "--gtest_filter=$2"
  local code=$? passed skipped
  passed=$(sed -n 's/.*\[  PASSED  \][^0-9]*\([0-9]*\) test.*/\1/p' "$out" | tail -1)
  skipped=$(sed -n 's/.*\[  SKIPPED \][^0-9]*\([0-9]*\) test.*/\1/p' "$out" | tail -1)
  if [ $code != 0 ]; then report FAIL "$1" "$(why $code)"
  elif [ "${passed:-0}${skipped:-0}" = 00 ]; then report FAIL "$1" "there is no such test"
  elif [ "${passed:-0}" = 0 ]; then report SKIP "$1" "$(grep -am1 -A1 'Skipped' "$out" | tail -1)"
  else report PASS "$1" "$passed passed, ${skipped:-0} skipped"; fi
}
suites() {
  local suite of_device="RankSumOnGpu PeerSumOnGpu RankThreadsOnGpu RankProcessesOnGpu NcclSumOnGpu"
  [ $device = cuda ] || of_device="RankSum OnMesh"
  for suite in $of_device; do
    [[ $suite == *Processes* ]] && start_mps || stop_mps
    tests "$suite" "$suite.*"
  done
}

sanitized() {  # hosts meet there: under a sanitizer no stream may wait for another
  local tool code where
  stop_mps
  for tool in memcheck racecheck; do
    check_began=$(ms)
    if [ $device != cuda ] || ! command -v compute-sanitizer > /dev/null; then
      report SKIP $tool "needs a GPU and compute-sanitizer"
      continue
    fi
    [ $tool = memcheck ] && share=2 || share=1
    within compute-sanitizer --tool $tool --error-exitcode 9 "$(program engine_test)" --gtest_brief=1 \
      --gtest_filter=RankThreadsOnGpu.choose_it_in_few_steps_of_tp2_where_hosts_meet
    code=$?
    where=$(grep -aoE '(hazard|Invalid).* (in|at) [A-Za-z_:]*kernel|ERROR SUMMARY.*|RACECHECK SUMMARY.*' "$out" | sort | uniq -c | sort -rn | head -3 | tr '\n' ';')
    if [ $code = 0 ] && grep -aq '\[  PASSED  \] *1' "$out"; then report PASS $tool "$where"
    elif [ $code = 9 ]; then report FAIL $tool "$where"
    else report FAIL $tool "$(why $code) $where"; fi
  done
}

shape() {  # all layers; the suites have four of them
  start_mps
  if [ $device = cuda ]; then
    GAUNTLET_TEST_GPU_MESH="tp2 gpt-oss-20b" mpi "$(program engine_test)" --gtest_brief=1 --gtest_filter=MpiRank.chooses_on_a_gpu
    local code=$?
    local clear
    clear=$(grep -a 'choices are clear' "$out" | tr '\n' ';')
    if [ $code = 0 ] && [ -n "$clear" ]; then report PASS "tp2 of gpt-oss-20b" "$clear"
    else report FAIL "tp2 of gpt-oss-20b" "$(why $code) $(grep -a ' after .* s$' "$out" | tail -1)"; fi
    return
  fi
  local bench=(generate --backend cpu "${model[@]}" --prompt 'It was' --max-tokens 24)
  within "$gauntlet" "${bench[@]}" && cp "$out" "$folder/alone"
  mpi "$gauntlet" "${bench[@]}" --mesh tp2 --rank-sums ordered
  if [ -s "$folder/alone" ] && cmp -s "$folder/alone" "$out"; then report PASS "tp2, ordered" "$(wc -c < "$out") bytes of text are the same"
  else report FAIL "tp2, ordered" "$(head -c 100 "$out")"; fi
}

shared_files() { find /dev/shm -mindepth 1 2> /dev/null | sort; }
lost() {  # ten times, one of them serving with open streams; the program says each time how long it took
  local rounds=${ROUNDS:-10} code losses
  [ $device = cuda ] || rounds=${ROUNDS:-1}
  start_mps
  shared_files > "$folder/shm"
  within "$(program serving_lost_ranks)" "$gauntlet" "$rounds" "${SEED:-$RANDOM}" $device
  code=$?
  losses=$(grep -ac 'over after' "$out")
  while read -r line; do report "$([[ $line == ok* ]] && echo PASS || echo FAIL)" "a rank" "$(sed -E 's/^(ok|FAILED) *//' <<< "$line")"; done < <(grep -aE '^(ok|FAILED)' "$out")
  [ $code = 0 ] && report PASS "all" "$losses jobs ended" || report FAIL "all" "$losses jobs ended; $(why $code)"
  local new
  new=$(shared_files | comm -13 "$folder/shm" - | head -3 | tr '\n' ' ')
  [ -z "$new" ] && report PASS "shared memory" "nothing new in /dev/shm" || report FAIL "shared memory" "$new"
  if [ -n "$own_mps" ]; then
    local clients
    clients=$(mps_clients)
    [ "$clients" = 0 ] && report PASS "MPS" "no client left" || report FAIL "MPS" "$clients clients left"
  fi
}

bench() {
  start_mps
  local sizes=(--prefill 64 --decode 32 --batch 1)
  [ $device = cpu ] || sizes=(--prefill 256,2048 --decode 64 --batch 1,8 --weights random --shape gpt-oss-20b --layers "${LAYERS:-8}")
  mpi "$gauntlet" bench --backend $device "${model[@]}" "${sizes[@]}" --seconds 0.5 --mesh tp2
  local code=$? rows
  rows=$(awk '/^(prefill|decode) /{printf "%s x%s of %s: %s tok/s; ", $1, $3, $5, $6}' "$out")
  [ $code = 0 ] && [ -n "$rows" ] && report PASS "two processes" "$rows" || report FAIL "two processes" "$(why $code)"
}

same() {  # name expected file
  if [ -s "$2" ] && cmp -s "$2" "$3"; then report PASS "$1" "the text of one executor"; else report FAIL "$1" "$(head -c 120 "$3")"; fi
}
commands() {  # a mesh gives the text of one executor, and to eight streams alike
  local text=(generate --backend $device "${model[@]}" --prompt 'Once upon a time' --max-tokens 48) mesh i port=${PORT:-8371} server streams=()
  within "$gauntlet" "${text[@]}"
  cp "$out" "$folder/alone"
  for mesh in ${MESHES:-tp2 ep2 tp2,ep2}; do
    stop_mps
    within "$gauntlet" "${text[@]}" --mesh "$mesh" --local-ranks 2
    same "generate $mesh, threads" "$folder/alone" "$out"
    start_mps
    mpi "$gauntlet" "${text[@]}" --mesh "$mesh"
    same "generate $mesh, processes" "$folder/alone" "$out"
  done
  check_began=$(ms)
  timeout --kill-after=5 "$(left)" mpirun -n 2 --oversubscribe --bind-to none "$gauntlet" serve --backend $device "${model[@]}" --mesh tp2 --port "$port" > "$folder/serve" 2>&1 &
  server=$!
  until curl -sf "localhost:$port/health" > "$folder/health" || ! kill -0 $server 2> /dev/null; do sleep 0.2; done
  ask() { curl -s "localhost:$port/v1/completions" -d '{"prompt": "Once upon a time", "max_tokens": 32, "temperature": 0}' -H 'content-type: application/json' | sed -n 's/.*"text": *"\(\([^"\\]\|\\.\)*\)".*/\1/p'; }
  ask > "$folder/first"
  for i in 1 2 3 4 5 6 7 8; do ask > "$folder/stream$i" & streams+=($!); done
  wait "${streams[@]}"
  for i in 1 2 3 4 5 6 7 8; do same "serve tp2, stream $i" "$folder/first" "$folder/stream$i"; done
  sleep 0.2
  local steps
  steps=$(curl -s "localhost:$port/metrics" | sed -n 's/^gauntlet:rank_steps_total{.*} //p' | tr '\n' ' ')
  [ -n "$steps" ] && [ "${steps%% *}" != 0 ] && [ "$(tr ' ' '\n' <<< "${steps% }" | sort -u | wc -l)" = 1 ] && report PASS "steps by rank" "$steps" || report FAIL "steps by rank" "$steps"
  kill $server
  wait $server
}

for part in "${parts[@]}"; do
  [ -z "$limit" ] || limit_of[$part]=$limit
  part_began=$(ms)
  $part
done
{
  printf '{"device": "%s", "machine": "%s", "at": "%s", "failures": %d, "checks": [\n' $device "$(json_text "${machine:-no GPU}")" "$(date -u +%FT%TZ)" $failures
  sed '$!s/$/,/' "$folder/checks"
  echo ']}'
} > "$record"
[ $failures = 0 ]
