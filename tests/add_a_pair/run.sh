#!/bin/sh
# Follows docs/add-a-pair.md command by command, in a copy of the chapter's list instead of the tree: what the page
# promises a newcomer must come true.
#   run.sh <gauntlet binary> <its build folder> <work folder>
set -eu
program=$1
build=$2
work=$3
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)

fail() {
  echo "add_a_pair: $*" >&2
  exit 1
}

rm -rf "$work"
mkdir -p "$work/catalog/ch07"
cp "$root/catalog/ch07/techniques" "$work/catalog/ch07/"
# Ceilings measured while other tests run are no ceilings: they stay out of the user's cache.
export XDG_CACHE_HOME="$build/test-cache"

awk '/^```sh$/ { inside = 1; next } /^```/ { inside = 0 } inside' "$root/docs/add-a-pair.md" \
  >"$work/commands"
[ -s "$work/commands" ] || fail "docs/add-a-pair.md has no sh blocks"

scaffolded=0 built=0 verified=0
while read -r command; do
  echo "+ $command"
  arguments=${command#build/release/gauntlet }
  case $command in
    "build/release/gauntlet new "*)
      # Words of the page, not of a user: they are meant to be split.
      # shellcheck disable=SC2086
      "$program" $arguments --catalog "$work/catalog"
      scaffolded=1
      ;;
    make)
      cmake -S "$here" -B "$work/build" -G Ninja -DGAUNTLET_BUILD_DIR="$build" \
        -DPAIR_ROOT="$work" >"$work/configure.log" 2>&1 || { cat "$work/configure.log"; exit 1; }
      ninja -j2 -C "$work/build" >"$work/build.log" 2>&1 || { cat "$work/build.log"; exit 1; }
      program=$work/build/gauntlet
      built=1
      ;;
    "build/release/gauntlet run "*)
      # shellcheck disable=SC2086
      "$program" $arguments --iterations 4 --repeat 1 --format json \
        --artifacts-dir "$work/artifacts" --expectations-dir "$work/expectations" \
        >"$work/result.json"
      grep -q '"id": "ch07:my_pair"' "$work/result.json" || fail "the new target did not run"
      grep -Eq '"checks": [1-9]' "$work/result.json" || fail "the new target was not verified"
      # Both sides are the same: only a noisy neighbour could make one of them pass.
      status=$(sed -n 's/^ *"status": "\([a-z_]*\)".*/\1/p' "$work/result.json")
      case $status in
        no_gain) verified=1 ;;
        passed) echo "add_a_pair: a noisy machine: identical sides differ" >&2 ;;
        *) cat "$work/result.json"; fail "the new target is '$status'" ;;
      esac
      ;;
    "build/release/gauntlet "*)
      # shellcheck disable=SC2086
      "$program" $arguments
      ;;
    *) fail "docs/add-a-pair.md has a command that this test cannot follow: $command" ;;
  esac
done <"$work/commands"

[ $scaffolded = 1 ] || fail "docs/add-a-pair.md scaffolds nothing"
[ $built = 1 ] || fail "docs/add-a-pair.md builds nothing"
[ $verified = 1 ] || fail "no run ended in no_gain"
