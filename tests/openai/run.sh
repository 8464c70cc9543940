#!/bin/sh
# Talks to gauntlet serve through OpenAI's own client; exit code 77 (skipped) with a reason where it is missing.
#   run.sh <gauntlet> <test file>
here=$(cd "$(dirname "$0")" && pwd)

skip() {
  echo "SKIPPED OpenAI's client: $1" >&2
  exit 77
}
command -v node >/dev/null || skip "node is not installed (apt install nodejs npm)"
[ -d "$here/node_modules/openai" ] || skip "openai is not installed (npm ci --prefix tests/openai)"

GAUNTLET="$1" exec node --test --test-reporter=spec "$here/$2"
