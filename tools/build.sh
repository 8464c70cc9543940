#!/bin/bash
# Configures a preset once and builds targets of it: tools/build.sh <preset> <target>...
set -euo pipefail
cd "$(dirname "$0")/.."
preset=$1
shift
[ -f "build/$preset/build.ninja" ] || cmake --preset "$preset"
cmake --build "build/$preset" --target "$@" -- --quiet
