#!/bin/sh
# Makes the sample report and tests it in chromium.
#   run.sh <make_sample_report> <folder to work in>
here=$(cd "$(dirname "$0")" && pwd)
. "$here/needs.sh"

set -e
mkdir -p "$2"
"$1" "$2"
REPORT_FOLDER="$2" exec node --test "$here/report.test.mjs"
