#!/bin/sh
# Runs an nvcc command and fails where ptxas reports that it gave up performance: a setmaxnreg it ignored
# (C7508) or wgmma it serialised (C7510, C7514, C7515, C7519). ptxas prints these as information only.
log=$(mktemp)
trap 'rm -f "$log"' EXIT
"$@" 2>"$log"
status=$?
cat "$log" >&2
if [ $status -eq 0 ] && grep -Eq '\(C75[0-9]{2}\)' "$log"; then
  echo "error: ptxas reports lost performance (above); this project treats it as an error" >&2
  exit 1
fi
exit $status
