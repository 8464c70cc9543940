#!/bin/sh
# Makes a sample page and tests it in chromium.
#   run.sh <program that makes it> <folder to work in> <test>
here=$(cd "$(dirname "$0")" && pwd)
. "$here/needs.sh"

set -e
mkdir -p "$2"
"$1" "$2"
REPORT_FOLDER="$2" exec node --test "$here/$3"
