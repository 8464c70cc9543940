#!/bin/bash
# clang-tidy-19 over the host sources: all of them, those named, or those that changed since a revision (with the sources
# beside a changed header). Each file is compiled alone, without precompiled headers: a forgotten include shows here.
#   tools/tidy.sh [--changed [REV] [--at-most N] | file...]
# REV is where this branch left origin/main; on main itself, the commit before. Of more than N files, N are drawn.
set -euo pipefail
cd "$(dirname "$0")/.."
build=build/tidy

# Nothing to do is no failure: a shallow clone has no commit to compare with, and a change may touch no source.
nothing() { echo "tidy: $1"; exit 0; }

most=100000
if [ "${1:-}" = --changed ]; then
  shift
  revision=
  if [ $# -gt 0 ] && [ "$1" != --at-most ]; then
    revision=$1
    shift
    git rev-parse -q --verify "$revision^{commit}" >/dev/null || { echo "tidy: there is no commit $revision" >&2; exit 2; }
  fi
  [ "${1:-}" != --at-most ] || most=$2
  if [ -z "$revision" ]; then
    revision=$(git merge-base HEAD origin/main 2>/dev/null || true)
    [ -n "$revision" ] && [ "$revision" != "$(git rev-parse HEAD)" ] || revision=HEAD~1
    git rev-parse -q --verify "$revision^{commit}" >/dev/null || nothing "no commit before this one to compare with"
  fi
  files=$(git diff --name-only --diff-filter=d "$revision" -- '*.cc' '*.h' | while read -r file; do
    case $file in
      *.cc) echo "$file" ;;
      *.h) for beside in "${file%.h}.cc" "${file%.h}_test.cc"; do [ ! -f "$beside" ] || echo "$beside"; done ;;
    esac
  done | sort -u)
elif [ $# -gt 0 ]; then
  files=$(printf '%s\n' "$@")
else
  files=$(git ls-files '*.cc')
fi
[ -n "$files" ] || nothing "no source changed"

# Configured with what device code is compiled with where there is a toolkit, so that no source is left out.
cmake --preset release -B $build -DGAUNTLET_UNITY=OFF -DGAUNTLET_PCH=OFF -DCMAKE_CXX_COMPILER=clang++-19 \
  -DCMAKE_C_COMPILER=clang-19 >/dev/null
# Only what this machine compiles: without a toolkit, not the sources that need one.
files=$(for file in $files; do
  grep -qF "\"$PWD/$file\"" $build/compile_commands.json && echo "$file"
done || true)
[ -n "$files" ] || nothing "no source that this machine compiles"
count=$(wc -w <<<"$files")
if [ "$count" -gt "$most" ]; then
  echo "tidy: $count files changed; these are $most of them, 'make tidy' looks at all"
  files=$(shuf -n "$most" <<<"$files")
fi
echo "tidy: $(wc -w <<<"$files") files"
# shellcheck disable=SC2086
printf '%s\n' $files | xargs -P "${JOBS:-$(nproc)}" -n 4 clang-tidy-19 -p $build --quiet --use-color=false 2> >(
  grep -vE '^[0-9]+ warnings? generated|^Suppressed |^Use -header-filter' >&2 || true)
echo "tidy: clean"
