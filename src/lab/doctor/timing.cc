// Is the clock cheap to read, and is the machine quiet?
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdlib>

#include "core/os/system_files.h"
#include "core/text/text.h"
#include "lab/doctor/checks.h"

namespace gauntlet::lab::doctor {
namespace {

Finding clocksource(const DoctorContext& context) {
  const Item item{"timing", "clocksource"};
  const std::string folder = "/sys/devices/system/clocksource/clocksource0";
  const auto current = context.files.text(folder + "/current_clocksource");
  if (!current) return item.unknown("the kernel shows no clocksource");
  // Those that are read without entering the kernel.
  constexpr std::array kFast = {"tsc", "kvm-clock", "hyperv_clocksource_tsc_page",
                                "arch_sys_counter"};
  if (std::find(kFast.begin(), kFast.end(), *current) != kFast.end()) return item.ok(*current);
  const auto others =
      split_words(context.files.text(folder + "/available_clocksource").value_or(""));
  const bool has_tsc = std::find(others.begin(), others.end(), "tsc") != others.end();
  return item.warn(*current + ": each reading enters the kernel and costs about a microsecond",
                   has_tsc ? "echo tsc > " + folder + "/current_clocksource"
                           : "boot with the kernel parameters clocksource=tsc tsc=reliable");
}

Finding load(const DoctorContext& context) {
  const Item item{"timing", "load"};
  const auto text = context.files.text("/proc/loadavg");
  if (!text || text->empty()) return item.unknown("/proc/loadavg is not readable");
  const double last_minute = std::strtod(text->c_str(), nullptr);
  // The load is the machine's, also where this process may use only a part of it.
  const auto online = context.files.text("/sys/devices/system/cpu/online");
  std::size_t cpus = parse_cpu_list(online.value_or("")).size();
  if (cpus == 0) cpus = context.cpus.size();
  const std::string reason =
      fmt::format("{:.2f} over the last minute on {} CPUs", last_minute, cpus);
  if (last_minute <= std::max(0.5, 0.1 * static_cast<double>(cpus))) return item.ok(reason);
  return item.warn(reason + ": other work takes time from what is measured",
                   "wait, or stop it: ps -eo pid,pcpu,comm --sort=-pcpu | head");
}

Finding stolen_time(const DoctorContext& context) {
  const Item item{"timing", "stolen time"};
  if (context.hypervisor.empty()) return item.ok("no hypervisor to take any");
  const auto text = context.files.text("/proc/stat");
  const auto words = split_words(split_lines(text.value_or("") + "\n").front());
  // cpu user nice system idle iowait irq softirq steal
  constexpr std::size_t kSteal = 8;
  if (words.size() <= kSteal || words[0] != "cpu") {
    return item.unknown("/proc/stat does not count stolen time");
  }
  double total = 0;
  for (std::size_t at = 1; at <= kSteal; ++at) {
    total += static_cast<double>(leading_number(words[at]).value_or(0));
  }
  const double stolen = static_cast<double>(leading_number(words[kSteal]).value_or(0));
  const double percent = total > 0 ? 100 * stolen / total : 0;
  const std::string reason = fmt::format("{:.2g}% since boot", percent);
  if (percent <= 0.5) return item.ok(reason);
  return item.warn(reason + ": the host runs other machines on these cores",
                   "use dedicated cores (a dedicated host, or pinned virtual CPUs)");
}

}  // namespace

std::vector<Finding> check_timing(const DoctorContext& context) {
  return {clocksource(context), load(context), stolen_time(context)};
}

}  // namespace gauntlet::lab::doctor
