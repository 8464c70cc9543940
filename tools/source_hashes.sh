#!/bin/bash
# One line per source that a GPU runs or that decides what it runs: "<sha256>  <path>".
set -euo pipefail
cd "$(dirname "$0")/.."
find catalog src -name '*.cu' -o -name '*.cuh' | LC_ALL=C sort | xargs sha256sum
