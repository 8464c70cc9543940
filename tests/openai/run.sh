#!/bin/sh
# Talks to gauntlet serve through clients of OpenAI's API; exit code 77 (skipped) with a reason where it is missing.
#   run.sh <gauntlet> <test file>
here=$(cd "$(dirname "$0")" && pwd)

skip() {
  echo "SKIPPED clients of OpenAI's API: $1" >&2
  exit 77
}
command -v node >/dev/null || skip "node is not installed (apt install nodejs npm)"
for package in openai zod ai @ai-sdk/openai @langchain/core @langchain/openai; do
  [ -d "$here/node_modules/$package" ] || skip "$package is not installed (npm ci --prefix tests/openai)"
done
case "$2" in langchain*)
  node -e 'process.exit(Number(process.versions.node.split(".")[0]) < 20 ? 1 : 0)' || skip "LangChain needs Node 20, this is $(node --version)" ;;
esac

GAUNTLET="$1" exec node --test --test-reporter=spec "$here/$2"
