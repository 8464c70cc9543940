#!/bin/sh
# Holds gauntlet's tokens against other implementations; exit code 77 (skipped) with a reason where they are missing.
#   run.sh <gauntlet> <harmony_lines> <test file>
here=$(cd "$(dirname "$0")" && pwd)

skip() {
  echo "SKIPPED the judges of tokens: $1" >&2
  exit 77
}
command -v node >/dev/null || skip "node is not installed (apt install nodejs npm)"
[ -d "$here/node_modules/tiktoken" ] || skip "tiktoken and others are not installed (npm ci --prefix tests/tokens)"

GAUNTLET="$1" HARMONY_LINES="$2" exec node --test --test-reporter=spec "$here/$3"
