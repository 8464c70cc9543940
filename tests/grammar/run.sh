#!/bin/sh
# Holds gauntlet's grammars against another implementation; exit code 77 (skipped) with a reason where it is missing.
#   run.sh <grammar_lines> <test file>
here=$(cd "$(dirname "$0")" && pwd)

skip() {
  echo "SKIPPED the judge of grammars: $1" >&2
  exit 77
}
command -v node >/dev/null || skip "node is not installed (apt install nodejs npm)"
[ -d "$here/node_modules/@mlc-ai/web-xgrammar" ] || skip "web-xgrammar is not installed (npm ci --prefix tests/grammar)"

GRAMMAR_LINES="$1" exec node --test --test-reporter=spec "$here/$2"
