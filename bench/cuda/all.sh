#!/bin/sh
# Every kernel benchmark, one after the other.
# usage: all.sh [DIR]   DIR holds the binaries; default: where this script lies
dir=${1:-$(dirname "$0")}
worst=0
for name in rows router rope_kv sample pack attention decode_product prefill_product batch_product plain_product; do
  program=$dir/${name}_speed
  if [ ! -x "$program" ]; then
    echo "all.sh: $program is missing; build it with: ninja -C build/release kernel_speeds" >&2
    exit 2
  fi
  begin=$(date +%s)
  "$program"
  rc=$?
  echo "${name}_speed: exit $rc after $(($(date +%s) - begin)) s"
  case $rc in
    0) ;;
    3) [ $worst -ne 0 ] || worst=3 ;;
    *) worst=1 ;;
  esac
done
exit $worst
