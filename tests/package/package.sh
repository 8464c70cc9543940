#!/bin/bash
# Does the package install on a bare Debian, serve, drain when stopped, and leave nothing when purged?
#   tests/package/package.sh build/release        builds the package from that build's files first
# Skips by name (77) where it lacks root, debootstrap or the archive.
set -euo pipefail
source=$(cd "$(dirname "$0")/../.." && pwd)
build=$(cd "${1:?say which build}" && pwd)
port=18431

skip() { echo "package: not tried: $1"; exit 77; }
fail() { echo "package: FAILED: $1" >&2; exit 1; }
step() { echo "package: $1"; }

[ "$(id -u)" -eq 0 ] || skip "it makes a root of its own, and this is not root"
for tool in debootstrap dpkg-deb dpkg-shlibdeps curl; do
  command -v $tool >/dev/null || skip "there is no $tool"
done

cmake --build "$build" --target gauntlet command_pages -- --quiet >/dev/null
package=$source/$("$source/tools/package.sh" "$build")
step "made $(basename "$package"), $(du -h "$package" | cut -f1)"

if command -v lintian >/dev/null; then
  # Not for Debian's own archive: there is no bug to close. OpenSSL and SQLite are linked in, so that one file runs anywhere.
  complaints=$(lintian --allow-root --tag-display-limit 0 --suppress-tags \
    initial-upload-closes-no-bugs,embedded-library "$package" 2>&1 | grep -E '^[EW]:' || true)
  [ -z "$complaints" ] || fail "lintian says: $complaints"
  step "lintian has no error and no warning"
else
  step "lintian was not tried: it is not installed"
fi

work=$(mktemp -d /var/tmp/gauntlet-package.XXXXXX)
root=$work/root
clean_up() {
  [ -z "${server:-}" ] || kill -KILL "$server" 2>/dev/null || true
  if mountpoint -q "$root/proc"; then umount "$root/proc"; fi
  rm -rf --one-file-system "$work"
}
trap clean_up EXIT

mirror=$(grep -rhoE 'https?://[^ ]+' /etc/apt/sources.list /etc/apt/sources.list.d 2>/dev/null | grep -v security | head -1)
# Everything that the package needs comes with the root, so that installing it needs no network.
debootstrap --variant=minbase --include=adduser,libstdc++6 bookworm "$root" "${mirror:-http://deb.debian.org/debian}" \
  >"$work/debootstrap.log" 2>&1 || skip "the archive gave no root: $(tail -n 1 "$work/debootstrap.log")"
mount -t proc proc "$root/proc"
inside() {
  chroot "$root" /usr/bin/env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root DEBIAN_FRONTEND=noninteractive "$@"
}
cp "$package" "$root/tmp/gauntlet.deb"
list_files() { (cd "$root" && find . -xdev -not -path './proc/*' -not -path './tmp/*' -not -path './var/*' | sort); }
list_files >"$work/before"
cp "$root/etc/passwd" "$work/passwd"
step "made a bare Debian of $(wc -l <"$work/before") files"

inside dpkg -i /tmp/gauntlet.deb >"$work/install.log" 2>&1 || { cat "$work/install.log" >&2; fail "dpkg -i"; }
inside id gauntlet >/dev/null || fail "there is no user gauntlet"
[ "$(inside stat -c '%U %a' /etc/gauntlet/serve.toml)" = "root 644" ] || fail "the configuration has another owner or mode"
inside gauntlet serve --config /etc/gauntlet/serve.toml --print-config >/dev/null || fail "the configuration is not read"
for file in /usr/share/man/man1/gauntlet-serve.1.gz /usr/share/bash-completion/completions/gauntlet \
  /usr/share/zsh/vendor-completions/_gauntlet /lib/systemd/system/gauntlet.service; do
  [ -e "$root$file" ] || [ -e "$root/usr$file" ] || fail "there is no $file"
done
grep -q '^ExecStart=/usr/bin/gauntlet serve --config /etc/gauntlet/serve.toml' \
  "$root/usr/lib/systemd/system/gauntlet.service" || fail "the unit starts another program"
step "installed"

# As the unit does, where no systemd runs.
chroot "$root" /usr/bin/env -i PATH=/usr/bin:/bin GAUNTLET_PORT=$port setpriv --reuid gauntlet --regid gauntlet --clear-groups \
  gauntlet serve --config /etc/gauntlet/serve.toml >"$work/server.log" 2>&1 &
server=$!
for _ in $(seq 150); do
  curl -sf "http://127.0.0.1:$port/ready" >/dev/null && break
  kill -0 $server 2>/dev/null || { cat "$work/server.log" >&2; fail "the server ended"; }
  sleep 0.2
done
ask() {
  curl -sS --max-time 60 "http://127.0.0.1:$port/v1/completions" -H 'Content-Type: application/json' \
    -d "{\"model\": \"gauntlet-tiny\", \"prompt\": \"Once upon a time\", \"ignore_eos\": true, \"max_tokens\": $1}"
}
ask 8 | grep -q '"completion_tokens":8' || fail "it does not answer"
step "the server answers as user $(ps -o user= -p "$(pgrep -P $server || echo $server)" | head -1)"

# What runs when it is told to stop is finished first.
ask 1500 >"$work/answer" &
asking=$!
for _ in $(seq 100); do
  curl -s "http://127.0.0.1:$port/metrics" | grep -qE 'num_requests_running\{.*\} 1$' && break
  sleep 0.05
done
kill -TERM $server
wait $asking || fail "the answer under way was lost"
grep -q '"completion_tokens":1500' "$work/answer" || fail "the answer under way was cut"
wait $server || fail "it ended with $?"
server=
grep -q '"integrity":"clean"' "$work/server.log" || fail "the server's books do not balance"
step "drained and ended"

echo "GAUNTLET_API_KEY=of-an-administrator" >"$root/etc/gauntlet/serve.env"
inside dpkg -r gauntlet >>"$work/install.log" 2>&1 || fail "dpkg -r"
[ -e "$root/etc/gauntlet/serve.toml" ] || fail "removing took the configuration"
inside dpkg -P gauntlet >>"$work/install.log" 2>&1 || { cat "$work/install.log" >&2; fail "dpkg -P"; }
list_files >"$work/after"
# adduser keeps copies of what it changed (passwd-, group-).
left=$(comm -13 "$work/before" "$work/after" | grep -vE '^\./etc/(passwd|group|shadow|gshadow|subuid|subgid)-$' || true)
[ -z "$left" ] || fail "purging left: $left"
diff "$work/passwd" "$root/etc/passwd" >&2 || fail "purging left the user"
[ -z "$(find "$root/var/lib" -path '*gauntlet*')" ] || fail "purging left $(find "$root/var/lib" -path '*gauntlet*')"
step "purged, and nothing is left"
