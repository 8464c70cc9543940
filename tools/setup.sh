#!/bin/bash
# Installs what a job needs and nothing else: Debian packages by name and, for tests, what each package-lock.json below
# tests/ names, from npm. Says what it installs; does nothing when all of it is there.
#   tools/setup.sh build | test | sanitize | tidy
set -euo pipefail
cd "$(dirname "$0")/.."
job=${1:?say what for: build, test, sanitize or tidy}

packages=(g++ cmake ninja-build ccache git ca-certificates libcli11-dev libfmt-dev nlohmann-json3-dev
  libsqlite3-dev libboost1.81-dev libssl-dev libgtest-dev libgmock-dev)
case $job in
  build) ;;
  test) packages+=(chromium nodejs npm openmpi-bin libopenmpi3) ;;
  sanitize) packages+=(clang-19 libclang-rt-19-dev llvm-19) ;;
  tidy) packages+=(clang-19 clang-tidy-19) ;;
  *) echo "setup: unknown job '$job'; it is build, test, sanitize or tidy" >&2; exit 2 ;;
esac

# A tool that is there by other means (node from its own packages, say) needs no Debian package.
has() {
  case $1 in
    nodejs) command -v node >/dev/null ;;
    npm) command -v npm >/dev/null ;;
    *) [ "$(dpkg-query -W -f='${db:Status-Status}' "$1" 2>/dev/null)" = installed ] ;;
  esac
}

missing=()
for package in "${packages[@]}"; do
  has "$package" || missing+=("$package")
done
if [ ${#missing[@]} -gt 0 ]; then
  echo "setup: installing Debian packages: ${missing[*]}"
  sudo=()
  if [ "$(id -u)" -ne 0 ]; then
    command -v sudo >/dev/null || { echo "setup: not root and no sudo; as root: apt-get install ${missing[*]}" >&2; exit 3; }
    sudo=(sudo)
  fi
  export DEBIAN_FRONTEND=noninteractive
  "${sudo[@]}" apt-get update -qq
  # clang-19 is in Debian 12's main archive as of 12.6.
  "${sudo[@]}" apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
fi

install_node_modules() {  # folder
  [ "$1/node_modules/.package-lock.json" -nt "$1/package-lock.json" ] && return
  echo "setup: installing the npm packages of $1"
  npm ci --prefix "$1" --no-audit --no-fund --silent
}
if [ "$job" = test ]; then
  for lock in tests/*/package-lock.json; do install_node_modules "$(dirname "$lock")"; done
fi
