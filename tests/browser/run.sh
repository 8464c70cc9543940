#!/bin/sh
# Makes a sample page and tests it in chromium; exit code 77 (skipped) with a reason where a tool is missing.
#   run.sh <program that makes it> <folder to work in> <test>
here=$(cd "$(dirname "$0")" && pwd)
: "${CHROMIUM:=/usr/bin/chromium}"
export CHROMIUM

skip() {
  echo "SKIPPED browser tests: $1" >&2
  exit 77
}
command -v node >/dev/null || skip "node is not installed (apt install nodejs npm)"
[ -x "$CHROMIUM" ] || skip "$CHROMIUM is not there (apt install chromium, or set CHROMIUM)"
[ -d "$here/node_modules/playwright-core" ] || skip "playwright-core is not installed (npm ci --prefix tests/browser)"

set -e
mkdir -p "$2"
"$1" "$2"
REPORT_FOLDER="$2" exec node --test "$here/$3"
