// May this process read the CPU's counters, and are there any?
#include <fmt/format.h>

#include <algorithm>

#include "lab/doctor/checks.h"

namespace gauntlet::lab::doctor {
namespace {

Finding permission(const DoctorContext& context) {
  const Item item{"profiling", "perf permission"};
  constexpr std::int64_t kOwnProcess = 2;  // the highest value that lets a process count itself
  const auto level = context.files.number("/proc/sys/kernel/perf_event_paranoid");
  if (!level) return item.unknown("the kernel has no perf events");
  const std::string value = fmt::format("kernel.perf_event_paranoid is {}", *level);
  if (*level <= kOwnProcess) return item.ok(value);
  if (has_capability(context.files, Capability::perfmon) ||
      has_capability(context.files, Capability::sys_admin)) {
    return item.ok(value + ", which does not bind this process (CAP_PERFMON)");
  }
  return item.warn(value + ": a process may not count its own events",
                   fmt::format("sysctl -w kernel.perf_event_paranoid={}", kOwnProcess));
}

Finding counters(const DoctorContext& context) {
  const Item item{"profiling", "hardware counters"};
  const auto sources = context.files.list("/sys/bus/event_source/devices");
  if (sources.empty()) return item.unknown("the kernel lists no event sources");
  const auto unit = std::find_if(sources.begin(), sources.end(), [](const std::string& name) {
    return name == "cpu" || name.starts_with("cpu_") || name.starts_with("armv8_");
  });
  if (unit != sources.end()) return item.ok(*unit);
  if (context.hypervisor.empty()) {
    return item.warn("the kernel drives no performance unit: cycles and misses cannot be counted",
                     "dmesg | grep -i 'performance events' says why");
  }
  return item.warn(
      "the virtual machine has no performance unit: cycles and misses cannot be counted",
      "start the guest with one (QEMU: -cpu host,pmu=on; clouds: a bare-metal instance)");
}

}  // namespace

std::vector<Finding> check_profiling(const DoctorContext& context) {
  return {permission(context), counters(context)};
}

}  // namespace gauntlet::lab::doctor
