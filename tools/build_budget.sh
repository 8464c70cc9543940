#!/bin/bash
# What a build cost and what ate it, against the budgets: CPU seconds by folder and by object (from the log that the
# compiler launcher keeps), the way from a fresh clone to the first report and through .ci/run, the program's size by
# folder and by section, the tracked tree. Fails when a budget is exceeded.
#   tools/build_budget.sh [build folder]
# A compilation that ccache answered costs nothing and says nothing: what is known of it is from an earlier miss. To measure
# all of it: rm -rf build/release && CCACHE_RECACHE=1 make
set -euo pipefail
cd "$(dirname "$0")/.."
build=${1:-build/release}
log=$build/compile_times.log
[ -f "$log" ] || { echo "budget: $log is missing: run make first" >&2; exit 3; }

# From a fresh clone to the first report in ten minutes on two cores, of which the study takes two.
program_cpu_s=800
first_report_s=600
study_s=120
# All of .ci/run: compiling, tests and what is built under sanitizers.
ci_minutes=45
ci_minutes_planned=60
cores=2
pair_cpu_s=10
binary_mib=40
tree_mib=32
planned_targets=184

exceeded=0
verdict() {  # what, value, budget, unit
  local mark=ok
  if awk -v value="$2" -v budget="$3" 'BEGIN { exit !(value > budget) }'; then
    mark=EXCEEDED
    exceeded=1
  fi
  printf '%-52s %9s of %5s %-14s %s\n' "$1" "$2" "$3" "$4" "$mark"
}

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
ninja -C "$build" -t inputs gauntlet | sort >"$work/program"
ninja -C "$build" -t targets all | sed 's/: [^:]*$//' | sort >"$work/outputs"

# The last miss of every output that the build still has; outputs known from hits alone are counted apart.
awk '$2 == "miss" { cost[$3] = $1 } { seen[$3] = 1 }
     END { for (output in seen) print (output in cost ? cost[output] : "hit"), output }' "$log" | sort -k2 >"$work/seen"
join -1 2 -2 1 -o 1.1,1.2 "$work/seen" "$work/outputs" >"$work/all"
join -1 2 -2 1 -o 1.1,1.2 "$work/all" "$work/program" >"$work/of_program"

folders() {  # milliseconds, output → milliseconds, folder
  awk '$1 != "hit" {
    folder = "other"
    if ($2 ~ /embedded_gauntlet_tiny/) folder = "models/gauntlet-tiny"
    else if (match($2, /gauntlet_(fmt|boost|headers|test_headers)\.dir/)) folder = "libraries and headers"
    else if (match($2, /[a-z_]*catalog\.dir/)) {
      folder = substr($2, RSTART, RLENGTH - 4)
      folder = folder == "gauntlet_catalog" ? "catalog" : "tests: " folder
    }
    else if ($2 ~ /^src\//) { match($2, /gauntlet_[a-z]+/); folder = "src/" substr($2, RSTART + 9, RLENGTH - 9) }
    else if ($2 ~ /^tests\//) { split($2, part, "/"); folder = part[2] == "CMakeFiles" ? "tests: " part[3] : "tests: " part[2] }
    sub(/\.dir$/, "", folder)
    print $1, folder }' "$1"
}
total() { awk '$1 != "hit" { sum += $1 } END { printf "%.0f", sum / 1000 }' "$1"; }

echo "CPU seconds by folder (compiled and linked in $build):"
folders "$work/all" | awk '{ ms = $1; $1 = ""; sum[$0] += ms } END { for (f in sum) printf "%8.1f %s\n", sum[f] / 1000, f }' | sort -rn
echo
echo "The ten worst:"
grep -v '^hit' "$work/all" | sort -rn | head | awk '{ printf "%8.1f  %s\n", $1 / 1000, $2 }'
unknown=$(grep -c '^hit' "$work/all" || true)
if [ "$unknown" -gt 0 ]; then
  echo
  echo "$unknown of $(wc -l <"$work/all") came from ccache at once: their cost is not in these sums."
fi

echo
targets=$(find catalog -name pair.cc -o -name engine_pair.cc -o -name lab.cc | wc -l)
folders "$work/all" | grep ' catalog$' >"$work/catalog" || true
per_target=$(awk -v targets="$targets" '{ sum += $1 } END { printf "%.1f", sum / 1000 / targets }' "$work/catalog")
# What tests took, as ctest remembers it: those that go through all targets, and all.
costs=$build/Testing/Temporary/CTestCostData.txt
tests=0
if [ -f "$costs" ]; then
  of_targets=$(awk -v targets="$targets" '/Catalogue\./ { sum += $3 } END { printf "%.2f", sum / targets }' "$costs")
  per_target=$(awk -v a="$per_target" -v b="$of_targets" 'BEGIN { printf "%.1f", a + b }')
  tests=$(awk 'NF == 3 { sum += $3 } END { printf "%.0f", sum }' "$costs")
fi
program=$(total "$work/of_program")
verdict "the program (make)" "$program" $program_cpu_s "CPU s"
verdict "make and the first report on $cores cores, estimated" $((program / cores + study_s)) $first_report_s "s"
verdict "a target of the catalogue, built and tested" "$per_target" $pair_cpu_s "CPU s"

# Of builds under sanitizers what their logs hold.
everything=$(($(total "$work/all") + tests))
for sanitized in build/asan build/tsan; do
  [ ! -f $sanitized/compile_times.log ] || everything=$((everything + $(awk '$2 == "miss" { cost[$3] = $1 }
    END { for (output in cost) sum += cost[output]; printf "%.0f", sum / 1000 }' $sanitized/compile_times.log)))
done
minutes() { awk -v s="$1" -v cores=$cores 'BEGIN { printf "%.1f", s / 60 / cores }'; }
verdict ".ci/run on $cores cores, as far as it was seen here" "$(minutes $everything)" $ci_minutes "min"
verdict "the same with the $planned_targets targets that are planned" \
  "$(minutes "$(awk -v all=$everything -v one="$per_target" -v more=$((planned_targets - targets)) 'BEGIN { print all + one * more }')")" \
  $ci_minutes_planned "min"

mib() { awk -v bytes="$1" 'BEGIN { printf "%.1f", bytes / 1048576 }'; }
if [ -f "$build/gauntlet" ]; then
  strip -o "$work/gauntlet" "$build/gauntlet"
  bytes=$(stat -c %s "$work/gauntlet")
  # What a target adds: functions and data by its name in the program, and what its objects hold besides. Templates that
  # every object has a copy of are in the program once.
  of_catalog=$({
    nm -S --radix=d -C "$build/gauntlet" | awk '/gauntlet::(ch[0-9]+|labs)::/ { print $2 + 0 }'
    grep 'gauntlet_catalog\.dir' "$work/of_program" | awk '{ print $2 }' | (cd "$build" && xargs size -A) |
      awk '$1 ~ /^\.(nv_fatbin|rodata|eh_frame|gcc_except_table)/ { print $2 }'
  } | awk '{ sum += $1 } END { print sum + 0 }')
  planned=$((bytes + of_catalog * (planned_targets - targets) / targets))
  verdict "the program, stripped, with $targets targets" "$(mib "$bytes")" $binary_mib "MiB"
  verdict "the same with the $planned_targets that are planned" "$(mib $planned)" $binary_mib "MiB"
fi
verdict "the tracked tree" "$(mib "$(git ls-files -z | xargs -0 stat -c %s | awk '{ sum += $1 } END { print sum }')")" $tree_mib "MiB"

# What ate it. Objects that the linker left out are counted, too.
if [ -f "$work/gauntlet" ]; then
  echo
  echo "The program by folder:"
  grep '\.o$' "$work/program" | (cd "$build" && xargs size) | awk '$1 ~ /^[0-9]+$/ { print ($1 + $2) * 1000, $6 }' >"$work/sizes"
  folders "$work/sizes" | awk -v all="$bytes" '{ size = $1; $1 = ""; sum[$0] += size / 1000; ours += size / 1000 }
    END { for (f in sum) if (sum[f] > 100000) printf "%8.1f MiB %s\n", sum[f] / 1048576, f
          printf "%8.1f MiB  OpenSSL, SQLite, the CUDA runtime, the C++ library and what the linker adds\n", (all - ours) / 1048576 }' | sort -rn
  echo
  echo "The program by section:"
  size -A "$work/gauntlet" | awk '$1 ~ /^\./ && $2 > 262144 { printf "%8.1f MiB  %s\n", $2 / 1048576, $1 }' | sort -rn
fi
echo
echo "The tracked tree by folder:"
git ls-files -z | xargs -0 stat -c '%s %n' | awk '{ n = split($2, part, "/"); sum[n > 1 ? part[1] : "."] += $1 }
  END { for (f in sum) if (sum[f] > 262144) printf "%8.1f MiB  %s\n", sum[f] / 1048576, f }' | sort -rn
exit $exceeded
