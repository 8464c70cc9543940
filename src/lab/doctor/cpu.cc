// Governor, boost and SMT: does a core run at its full clock, and alone?
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "core/os/system_files.h"
#include "lab/doctor/checks.h"

namespace gauntlet::lab::doctor {
namespace {

std::string cpu_folder(int cpu) { return fmt::format("/sys/devices/system/cpu/cpu{}", cpu); }

std::string whose_clock(const DoctorContext& context) {
  return context.hypervisor.empty() ? "" : ": the clock is the host's business";
}

Finding governor(const DoctorContext& context) {
  const Item item{"cpu", "governor"};
  std::map<std::string, std::vector<int>> slow;
  bool visible = false;
  for (int cpu : context.cpus) {
    const std::string folder = cpu_folder(cpu) + "/cpufreq";
    const auto name = context.files.text(folder + "/scaling_governor");
    if (!name) continue;
    visible = true;
    if (*name == "performance") continue;
    // intel_pstate and amd-pstate-epp choose the clock themselves; this preference says how.
    if (context.files.text(folder + "/energy_performance_preference") == "performance") continue;
    slow[*name].push_back(cpu);
  }
  if (!visible) return item.unknown("no frequency control is visible" + whose_clock(context));
  if (slow.empty()) return item.ok("all CPUs are set to performance");
  std::string reason;
  for (const auto& [name, cpus] : slow) {
    reason +=
        fmt::format("{}CPUs {} use {}", reason.empty() ? "" : ", ", format_cpu_list(cpus), name);
  }
  return item.warn(reason + ": the clock rises only after work has begun",
                   "cpupower frequency-set -g performance");
}

Finding boost(const DoctorContext& context) {
  const Item item{"cpu", "boost"};
  constexpr const char* kBoost = "/sys/devices/system/cpu/cpufreq/boost";
  constexpr const char* kNoTurbo = "/sys/devices/system/cpu/intel_pstate/no_turbo";
  const std::string on = "on; times follow temperature and load, so compare within one run";
  const std::string off = "off: cores stay at their base clock";
  if (const auto no_turbo = context.files.number(kNoTurbo)) {
    return *no_turbo == 0 ? item.ok(on) : item.warn(off, fmt::format("echo 0 > {}", kNoTurbo));
  }
  if (const auto enabled = context.files.number(kBoost)) {
    return *enabled != 0 ? item.ok(on) : item.warn(off, fmt::format("echo 1 > {}", kBoost));
  }
  return item.unknown("no boost control is visible" + whose_clock(context));
}

Finding smt(const DoctorContext& context) {
  const Item item{"cpu", "smt"};
  std::vector<int> one_per_core;
  std::string shared;  // the first two of our CPUs that are one core
  std::map<std::string, int> cores;
  for (int cpu : context.cpus) {
    const auto siblings = context.files.text(cpu_folder(cpu) + "/topology/thread_siblings_list");
    if (!siblings) return item.unknown("the kernel shows no core topology");
    const auto [first, is_new] = cores.emplace(*siblings, cpu);
    if (is_new) {
      one_per_core.push_back(cpu);
    } else if (shared.empty()) {
      shared = fmt::format("CPUs {} and {}", first->second, cpu);
    }
  }
  if (!shared.empty()) {
    return item.warn(
        fmt::format("{} are one core: two busy threads there take turns ({} CPUs, {} cores)",
                    shared, context.cpus.size(), one_per_core.size()),
        fmt::format("taskset -c {} gauntlet ...", format_cpu_list(one_per_core)));
  }
  return item.ok("each CPU this process may use is a core of its own");
}

/// Pinned threads still share their CPUs with whatever else the scheduler puts there.
Finding pinning(const DoctorContext& context) {
  const Item item{"cpu", "pinning"};
  const auto list = context.files.text("/sys/devices/system/cpu/isolated");
  if (!list) return item.unknown("the kernel does not say which CPUs are set apart");
  const std::vector<int> isolated = parse_cpu_list(*list);
  const auto is_isolated = [&](int cpu) {
    return std::ranges::find(isolated, cpu) != isolated.end();
  };
  if (std::ranges::any_of(context.cpus, is_isolated)) {
    if (std::ranges::all_of(context.cpus, is_isolated)) {
      return item.ok(fmt::format("CPUs {} are set apart, and this process stays on them",
                                 format_cpu_list(context.cpus)));
    }
    return item.warn(
        "this process may run on CPUs that are set apart and on others: threads that "
        "are not pinned stay where they start, on the set apart as well",
        fmt::format("taskset -c {} gauntlet ...", format_cpu_list(isolated)));
  }
  const auto online =
      parse_cpu_list(context.files.text("/sys/devices/system/cpu/online").value_or(""));
  if (context.cpus.size() < online.size()) {
    return item.ok(fmt::format("this process stays on CPUs {} of {}", format_cpu_list(context.cpus),
                               format_cpu_list(online)));
  }
  if (!isolated.empty()) {
    return item.warn(fmt::format("CPUs {} are set apart, and this process runs on the others",
                                 format_cpu_list(isolated)),
                     fmt::format("taskset -c {} gauntlet ...", format_cpu_list(isolated)));
  }
  return item.ok(
      "no CPU is set apart: pin threads (taskset -c 2-7 PROGRAM), and on machines that nobody else "
      "uses set CPUs apart (isolcpus=2-7 on the kernel's command line)");
}

}  // namespace

std::vector<Finding> check_cpu(const DoctorContext& context) {
  return {governor(context), boost(context), smt(context), pinning(context)};
}

}  // namespace gauntlet::lab::doctor
