#!/bin/bash
# Configures a preset once and builds a target of it: tools/build.sh <preset> <target>.
set -euo pipefail
cd "$(dirname "$0")/.."
preset=$1 target=$2
[ -f "build/$preset/build.ninja" ] || cmake --preset "$preset"
cmake --build "build/$preset" --target "$target" -- --quiet
