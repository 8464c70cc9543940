#!/bin/bash
# clang-tidy-19 over the host sources, all of them, those named, or those that changed since a revision (with the sources
# beside a changed header). Each file is compiled alone, without precompiled headers: a forgotten include shows here.
#   tools/tidy.sh [--changed REV | file...]
set -euo pipefail
cd "$(dirname "$0")/.."
build=build/tidy
# Configured with what device code is compiled with where there is a toolkit, so that no source is left out.
cmake --preset release -B $build -DGAUNTLET_UNITY=OFF -DGAUNTLET_PCH=OFF -DCMAKE_CXX_COMPILER=clang++-19 \
  -DCMAKE_C_COMPILER=clang-19 >/dev/null

if [ "${1:-}" = --changed ]; then
  revision=${2:?say since when: tools/tidy.sh --changed REV}
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
# Only what this machine compiles: without a toolkit, not the sources that need one.
files=$(for file in $files; do
  grep -qF "\"$PWD/$file\"" $build/compile_commands.json && echo "$file"
done || true)
[ -n "$files" ] || { echo "tidy: nothing to look at"; exit 0; }
echo "tidy: $(wc -w <<<"$files") files"
# shellcheck disable=SC2086
printf '%s\n' $files | xargs -P "${JOBS:-$(nproc)}" -n 4 clang-tidy-19 -p $build --quiet --use-color=false 2> >(
  grep -vE '^[0-9]+ warnings? generated|^Suppressed |^Use -header-filter' >&2 || true)
echo "tidy: clean"
