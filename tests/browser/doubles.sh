#!/bin/sh
# Runs the doubles and tests their report in chromium: doubles.sh <gauntlet-doubles> <folder to work in>.
here=$(cd "$(dirname "$0")" && pwd)
. "$here/needs.sh"

set -e
rm -rf "$2"
mkdir -p "$2"
"$1" run --targets labs:scale_ladder doubles:queue_tail doubles:rank_sum --backend all --launcher threads --no-ceilings \
  --repeat 2 --iterations 6 --artifacts-dir "$2" --expectations-dir "$2/expectations"
REPORT_FOLDER=$(dirname "$2"/*/report.html) exec node --test "$here/doubles.test.mjs"
