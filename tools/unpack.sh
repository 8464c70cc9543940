#!/bin/bash
# Unpacks programs of Debian packages, with the libraries that this machine lacks, into a folder: nothing is installed or
# started, and root is not needed. Run them with LD_LIBRARY_PATH=FOLDER/usr/lib/$(gcc -dumpmachine).
#   tools/unpack.sh FOLDER PROGRAM...
set -euo pipefail
folder=${1:?say into which folder}
shift
mkdir -p "$folder"
archives=$(mktemp -d "$(cd "$folder" && pwd)/archives.XXXXXX")
trap 'rm -rf "$archives"' EXIT
mkdir "$archives/partial"

for program in "$@"; do
  if [ "$program" = promtool ]; then  # It stands alone; what else its package depends on is for web pages.
    (cd "$archives" && apt-get download prometheus)
  else
    apt-get install -y --no-install-recommends --download-only -o Debug::NoLocking=1 -o "Dir::Cache::archives=$archives" "$program"
  fi
done
for package in "$archives"/*.deb; do dpkg-deb --extract "$package" "$folder"; done
rm -f "$folder/usr/bin/prometheus"
for program in "$@"; do
  [ -x "$folder/usr/sbin/$program" ] || [ -x "$folder/usr/bin/$program" ] ||
    { echo "unpack: the package of $program holds no such program" >&2; exit 1; }
done
