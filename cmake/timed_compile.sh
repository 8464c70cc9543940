#!/bin/bash
# Runs a compiler or linker and appends one line to a log: milliseconds of CPU, hit or miss (of ccache), what it wrote.
#   timed_compile.sh <log> <command>...
log=$1
shift
# Without this sloppiness ccache refuses every compilation that uses a precompiled header. Dependencies come from the
# compiler's own list, so that a miss costs no second preprocessing.
export CCACHE_SLOPPINESS=pch_defines,time_macros CCACHE_DEPEND=1 CCACHE_STATSLOG=$log.$$
"$@"
status=$?
times >"$log.$$.times"
{ read -r _; read -r user system; } <"$log.$$.times"

milliseconds() {  # as in 1m02.345s
  local seconds=${1#*m}
  seconds=${seconds%s}
  echo $((${1%m*} * 60000 + 10#${seconds/[.,]/}))
}
output=
while [ $# -gt 1 ]; do
  [ "$1" = -o ] && output=$2
  shift
done
cached=miss
[ -f "$log.$$" ] && grep -q cache_hit "$log.$$" && cached=hit
echo "$(($(milliseconds "$user") + $(milliseconds "$system"))) $cached $output" >>"$log"
rm -f "$log.$$" "$log.$$.times"
exit $status
