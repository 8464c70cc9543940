#!/bin/bash
# Ranks that share a GPU, through the commands, as threads and as processes under mpirun: tools/gpu_ranks.sh [gauntlet [model]]
# Starts MPS where it is installed and no other is to be used: without it processes take the GPU in turns, and each sum waits for one.
set -uo pipefail
gauntlet=$(realpath "${1:-build/release/gauntlet}")
model=(${2:+--model "$(realpath "$2")"})
backend=(--backend "${BACKEND:-cuda}")
folder=$(mktemp -d)
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
cleanup() {
  [ -z "${own_mps:-}" ] || echo quit | nvidia-cuda-mps-control > "$folder/mps.log" 2>&1
  rm -rf "$folder"
}
trap cleanup EXIT
if command -v nvidia-cuda-mps-control > /dev/null && [ -z "${CUDA_MPS_PIPE_DIRECTORY:-}" ] && [ ! -e /tmp/nvidia-mps/control ]; then
  export CUDA_MPS_PIPE_DIRECTORY=$folder/mps CUDA_MPS_LOG_DIRECTORY=$folder/mps-log
  mkdir "$CUDA_MPS_PIPE_DIRECTORY" "$CUDA_MPS_LOG_DIRECTORY"
  nvidia-cuda-mps-control -d && own_mps=1
fi
failures=0
same() { # <name> <expected file> <file>
  if [ -s "$2" ] && cmp -s "$2" "$3"; then
    echo "same      $1"
  else
    echo "DIFFERENT $1: $(head -c 120 "$3" | tr '\n' ' ')"
    failures=$((failures + 1))
  fi
}
mpi() { timeout "${LIMIT:-300}" mpirun -n 2 --bind-to none "$gauntlet" "$@"; }
text=(generate "${backend[@]}" "${model[@]}" --prompt 'Once upon a time' --max-tokens 48)
"$gauntlet" "${text[@]}" > "$folder/alone" 2> "$folder/err" || cat "$folder/err"
for mesh in ${MESHES:-tp2 ep2 tp2,ep2}; do
  "$gauntlet" "${text[@]}" --mesh $mesh --local-ranks 2 > "$folder/threads" 2> "$folder/err" || tail -3 "$folder/err"
  same "generate $mesh, threads" "$folder/alone" "$folder/threads"
  mpi "${text[@]}" --mesh $mesh > "$folder/processes" 2> "$folder/err" || tail -3 "$folder/err"
  same "generate $mesh, processes" "$folder/alone" "$folder/processes"
done
bench=(bench "${backend[@]}" --prefill 256 --decode 32 --batch 1,8 --seconds 1 --weights random --shape "${SHAPE:-gpt-oss-20b}" --layers "${LAYERS:-24}")
echo "one executor:" && "$gauntlet" "${bench[@]}" --no-ceilings 2> "$folder/err" | cut -c1-110 || tail -3 "$folder/err"
echo "two processes:" && mpi "${bench[@]}" --mesh tp2 2> "$folder/err" | cut -c1-110 || tail -5 "$folder/err"
port=${PORT:-8371}
mpi serve "${backend[@]}" "${model[@]}" --mesh tp2 --port "$port" > "$folder/serve" 2>&1 &
for _ in $(seq 100); do
  curl -sf "localhost:$port/health" > /dev/null && break
  kill -0 %1 2> /dev/null || break
  sleep 0.2
done
ask() { curl -s "localhost:$port/v1/completions" -d '{"prompt": "Once upon a time", "max_tokens": 32, "temperature": 0}' -H 'content-type: application/json'; }
ask > "$folder/first"
for i in 1 2 3 4 5 6 7 8; do ask > "$folder/stream$i" & streams+=($!); done
wait "${streams[@]}"
text_in() { sed -n 's/.*"text": *"\(\([^"\\]\|\\.\)*\)".*/\1/p' "$1"; }
text_in "$folder/first" > "$folder/first.text"
for i in 1 2 3 4 5 6 7 8; do
  text_in "$folder/stream$i" > "$folder/stream.text"
  same "serve tp2, stream $i" "$folder/first.text" "$folder/stream.text"
done
curl -s "localhost:$port/metrics" | grep -E '^gauntlet:rank_(steps|weight|kv)' | head -6
pkill -TERM -P $! -o gauntlet 2> /dev/null || kill %1 2> /dev/null
wait
# Rank 1 is killed in the middle: the job ends within 10 s, by a sentence that names it.
mpi "${bench[@]}" --decode 4096 --batch 8 --mesh tp2 > /dev/null 2> "$folder/lost" &
for _ in $(seq 150); do
  sleep 0.2
  victim=$(for p in $(pgrep -f "^$gauntlet .*--decode 4096"); do
    tr '\0' '\n' < /proc/$p/environ 2> /dev/null | grep -qx OMPI_COMM_WORLD_RANK=1 && echo $p
  done)
  # Of a process that computes: it has had the GPU's memory for a while.
  [ -n "$victim" ] && [ "$(ps -o etimes= -p $victim)" -ge "${KILL_AFTER:-8}" ] && break
done
killed=$(date +%s%N)
kill -9 $victim
wait
took=$((($(date +%s%N) - killed) / 1000000))
if [ $took -lt 10000 ] && grep -qa 'rank 1' "$folder/lost"; then
  echo "ended     $took ms after rank 1 was killed: $(grep -am1 'rank 1' "$folder/lost")"
else
  echo "NOT ENDED by rank 1's end: $took ms, $(tail -3 "$folder/lost" | tr '\n' ' ')"
  failures=$((failures + 1))
fi
[ $failures = 0 ]
