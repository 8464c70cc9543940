#!/bin/bash
# Does `make install` put everything below its prefix and DESTDIR, and keep a configuration that is there?
#   tests/package/install.sh build/release
set -euo pipefail
build=$(cd "${1:?say which build}" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

fail() { echo "install: FAILED: $1" >&2; exit 1; }
install_below() {  # DESTDIR, prefix
  DESTDIR=$1 cmake --install "$build" --prefix "$2" >"$work/log" 2>&1 || { cat "$work/log" >&2; fail "cmake --install"; }
}
expect() { [ -e "$1" ] || fail "there is no $1"; }

cmake --build "$build" --target command_pages -- --quiet >/dev/null

# Into a prefix of its own, as a user may: the program runs from there with the configuration beside it.
install_below "" "$work/own"
for file in bin/gauntlet etc/gauntlet/serve.toml lib/systemd/system/gauntlet.service share/man/man1/gauntlet-serve.1 \
  share/bash-completion/completions/gauntlet share/zsh/site-functions/_gauntlet share/doc/gauntlet/serving.md; do
  expect "$work/own/$file"
done
"$work/own/bin/gauntlet" serve --config "$work/own/etc/gauntlet/serve.toml" --print-config >/dev/null
grep -q "^ExecStart=$work/own/bin/gauntlet serve --config $work/own/etc/gauntlet/serve.toml" \
  "$work/own/lib/systemd/system/gauntlet.service" || fail "the unit starts another program"

# A configuration that somebody changed stays.
echo "port = 8123" >>"$work/own/etc/gauntlet/serve.toml"
install_below "" "$work/own"
grep -q "^port = 8123" "$work/own/etc/gauntlet/serve.toml" || fail "the configuration was overwritten"

# For whoever packs it: below DESTDIR, nothing says so.
for prefix in /usr /usr/local; do
  staged=$work/staged$prefix.d
  install_below "$staged" $prefix
  expect "$staged$prefix/bin/gauntlet"
  expect "$staged/etc/gauntlet/serve.toml"
  grep -q "^ExecStart=$prefix/bin/gauntlet serve --config /etc/gauntlet/serve.toml" \
    "$staged$prefix/lib/systemd/system/gauntlet.service" || fail "the unit names another path below $prefix"
  [ "$(ls "$staged")" = "$(printf 'etc\nusr')" ] || fail "something else is in $staged: $(ls "$staged")"
  if grep -rlI "$staged" "$staged"; then fail "a file names $staged"; fi
done
expect "$work/staged/usr.d/usr/share/zsh/vendor-completions/_gauntlet"
expect "$work/staged/usr/local.d/usr/local/share/zsh/site-functions/_gauntlet"
echo "install: all is where it belongs"
