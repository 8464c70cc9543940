#!/bin/bash
# Installs what a job needs and nothing else: Debian packages by name and, for tests, programs unpacked below build/tools and
# what each package-lock.json below tests/ names, from npm. Says what it installs; does nothing when all of it is there.
#   tools/setup.sh build | package | test | sanitize | tidy
set -euo pipefail
cd "$(dirname "$0")/.."
job=${1:?say what for: build, package, test, sanitize or tidy}

packages=(g++ cmake ninja-build ccache git ca-certificates libcli11-dev libfmt-dev nlohmann-json3-dev
  libsqlite3-dev liburing-dev liblz4-dev libboost1.81-dev libssl-dev libtomlplusplus-dev libgtest-dev libgmock-dev librapidcheck-dev)
case $job in
  build) ;;
  package) packages+=(dpkg-dev) ;;
  test) packages+=(chromium nodejs npm openmpi-bin libopenmpi3 zsh) ;;
  sanitize) packages+=(clang-19 libclang-rt-19-dev llvm-19) ;;
  tidy) packages+=(clang-19 clang-tidy-19) ;;
  *) echo "setup: unknown job '$job'; it is build, package, test, sanitize or tidy" >&2; exit 2 ;;
esac

# A tool that is there by other means (node from its own packages, say) needs no Debian package.
has() {
  case $1 in
    nodejs) command -v node >/dev/null ;;
    npm) command -v npm >/dev/null ;;
    *) [ "$(dpkg-query -W -f='${db:Status-Status}' "$1" 2>/dev/null)" = installed ] ;;
  esac
}

# Runs a command quietly. When it fails: what failed, the end of what it said, and what `advice_of` makes of that.
quietly() {  # what it does, command...
  local what=$1 log
  shift
  log=$(mktemp)
  if "$@" >"$log" 2>&1; then
    rm -f "$log"
    return
  fi
  {
    echo "setup: $what failed: $*"
    tail -n 15 "$log" | sed 's/^/  | /'
    advice_of "$log" | sed 's/^/setup: /'
  } >&2
  rm -f "$log"
  exit 3
}

advice_of() {  # log
  local said
  said=$(cat "$1")
  case $said in
    *SELF_SIGNED_CERT* | *UNABLE_TO_VERIFY* | *UNABLE_TO_GET_ISSUER* | *CERT_*)
      echo "npm does not trust the registry's certificate. Where a proxy signs with its own authority, name it:"
      echo "export NODE_EXTRA_CA_CERTS=/etc/ssl/certs/ca-certificates.crt" ;;
    *"ertificate verification failed"* | *"certificate is NOT trusted"*)
      echo "apt does not trust the archive's certificate: install the proxy's authority below"
      echo "/usr/local/share/ca-certificates and run update-ca-certificates." ;;
    *"Could not get lock"* | *"Unable to acquire the dpkg"*)
      echo "another program is installing packages; wait until it ends, then run this again." ;;
    *"Unable to locate package"* | *"has no installation candidate"*)
      echo "the archive lacks a package; the names are those of Debian 12.6 or later (see /etc/apt/sources.list)." ;;
    *ENOTFOUND* | *EAI_AGAIN* | *ECONNREFUSED* | *ETIMEDOUT* | *ECONNRESET* | *"Temporary failure resolving"* | \
      *"Could not resolve"* | *"Unable to connect"* | *"Could not connect"*)
      echo "the network cannot be reached; behind a proxy, set https_proxy and http_proxy, then run this again." ;;
    *E401* | *E403* | *E404*)
      echo "the registry refused; npm config get registry says which one is asked." ;;
    *EACCES* | *EROFS* | *"Permission denied"*)
      echo "this user may not write there; look at who owns the folder." ;;
    *ENOSPC* | *"No space left"* | *"not have enough free space"*)
      echo "the disk is full." ;;
    *)
      echo "run that command by hand to see all it says." ;;
  esac
}

missing=()
for package in "${packages[@]}"; do
  has "$package" || missing+=("$package")
done

# Programs that tests start: below build/tools they run only when a test wants them, whereas installing nginx would serve this
# machine's port 80. One that is installed is left alone.
tools=build/tools
programs=()
if [ "$job" = test ]; then
  for program in nginx haproxy promtool mandoc; do
    PATH=$PATH:/usr/sbin command -v "$program" >/dev/null || [ -x "$tools/usr/sbin/$program" ] ||
      [ -x "$tools/usr/bin/$program" ] || programs+=("$program")
  done
fi

if [ $((${#missing[@]} + ${#programs[@]})) -gt 0 ]; then
  sudo=()
  if [ "$(id -u)" -ne 0 ]; then
    if command -v sudo >/dev/null; then sudo=(sudo)
    elif [ ${#missing[@]} -gt 0 ]; then
      echo "setup: not root and no sudo; as root: apt-get install ${missing[*]}" >&2
      exit 3
    fi
  fi
  export DEBIAN_FRONTEND=noninteractive
  quietly "reading the lists of packages" "${sudo[@]}" apt-get update -qq
fi
if [ ${#missing[@]} -gt 0 ]; then
  echo "setup: installing Debian packages: ${missing[*]}"
  # clang-19 is in Debian 12's main archive as of 12.6.
  quietly "installing Debian packages" "${sudo[@]}" apt-get install -y -qq --no-install-recommends "${missing[@]}"
fi

if [ ${#programs[@]} -gt 0 ]; then
  echo "setup: unpacking below $tools: ${programs[*]}"
  quietly "fetching programs for tests" tools/unpack.sh "$tools" "${programs[@]}"
fi

install_node_modules() {  # folder
  [ "$1/node_modules/.package-lock.json" -nt "$1/package-lock.json" ] && return
  echo "setup: installing the npm packages of $1"
  quietly "installing the npm packages of $1" npm ci --prefix "$1" --no-audit --no-fund --loglevel=error
}
if [ "$job" = test ]; then
  for lock in tests/*/package-lock.json; do install_node_modules "$(dirname "$lock")"; done
fi
