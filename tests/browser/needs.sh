# Sourced by the scripts beside it: exit code 77 (skipped) with a reason where a tool is missing.
: "${CHROMIUM:=/usr/bin/chromium}"
export CHROMIUM

skip() {
  echo "SKIPPED browser tests: $1" >&2
  exit 77
}
command -v node >/dev/null || skip "node is not installed (apt install nodejs npm)"
[ -x "$CHROMIUM" ] || skip "$CHROMIUM is not there (apt install chromium, or set CHROMIUM)"
[ -d "$here/node_modules/playwright-core" ] || skip "playwright-core is not installed (npm ci --prefix tests/browser)"
