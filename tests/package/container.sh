#!/bin/bash
# Does the container build, serve on a read-only root without rights, say that it is healthy, and drain when stopped?
# Skips by name (77) where no container engine or no registry is within reach.
set -euo pipefail
source=$(cd "$(dirname "$0")/../.." && pwd)
port=18432
name=gauntlet-test-$$

skip() { echo "container: not tried: $1"; exit 77; }
fail() { echo "container: FAILED: $1" >&2; exit 1; }

engine=$(command -v podman || command -v docker) || skip "there is neither podman nor docker"
bases=$(sed -n 's/^FROM \(docker[^ ]*\).*/\1/p; s/^ARG BUILDER=//p' "$source/deploy/Containerfile")
for image in $bases; do
  "$engine" image inspect "$image" >/dev/null 2>&1 || "$engine" pull "$image" >/dev/null 2>&1 || skip "there is no image $image"
done
"$engine" build -f "$source/deploy/Containerfile" -t "$name" "$source" || fail "it does not build"
trap '"$engine" rm -f "$name" >/dev/null 2>&1 || true; "$engine" rmi "$name" >/dev/null 2>&1 || true' EXIT
"$engine" run -d --name "$name" --read-only --cap-drop all -p "127.0.0.1:$port:8000" "$name" >/dev/null
for _ in $(seq 150); do
  curl -sf "http://127.0.0.1:$port/ready" >/dev/null && break
  sleep 0.2
done
curl -sS --max-time 60 "http://127.0.0.1:$port/v1/completions" -H 'Content-Type: application/json' \
  -d '{"model": "gauntlet-tiny", "prompt": "Once upon a time", "ignore_eos": true, "max_tokens": 8}' |
  grep -q '"completion_tokens":8' || fail "it does not answer"
[ "$("$engine" exec "$name" id -u)" != 0 ] || fail "it is root"
if "$engine" exec "$name" touch /tmp/x 2>/dev/null; then fail "its root can be written to"; fi
"$engine" stop -t 45 "$name" >/dev/null
[ "$("$engine" inspect -f '{{.State.ExitCode}}' "$name")" = 0 ] || fail "it did not end by itself"
"$engine" logs "$name" 2>&1 | grep -q '"integrity":"clean"' || fail "the server's books do not balance"
echo "container: built, served and drained"
