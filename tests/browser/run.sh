#!/bin/sh
# Makes sample pages and tests them in chromium.
#   run.sh <make_sample_...> <folder to work in> <test file>
here=$(cd "$(dirname "$0")" && pwd)
. "$here/needs.sh"

set -e
mkdir -p "$2"
"$1" "$2"
REPORT_FOLDER="$2" exec node --test "$here/$3"
