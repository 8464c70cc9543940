#!/bin/sh
# Tests the server's page in chromium: chat.sh <gauntlet> <test file>. The test starts the server.
here=$(cd "$(dirname "$0")" && pwd)
. "$here/needs.sh"
GAUNTLET="$1" exec node --test "$here/$2"
