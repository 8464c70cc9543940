// Huge pages and swap: does an access cost a translation, or a disk?
#include <fmt/format.h>

#include "core/machine/host_features.h"
#include "core/os/system_files.h"
#include "core/text/text.h"
#include "lab/doctor/checks.h"

namespace gauntlet::lab::doctor {
namespace {

constexpr const char* kThp = "/sys/kernel/mm/transparent_hugepage";

std::optional<std::int64_t> meminfo(const SystemFiles& files, const char* key) {
  return leading_number(files.field("/proc/meminfo", key).value_or(""));
}

Finding transparent_huge_pages(const DoctorContext& context) {
  const Item item{"memory", "transparent huge pages"};
  const std::string enabled =
      chosen_word(context.files.text(std::string(kThp) + "/enabled").value_or(""));
  const std::string defrag =
      chosen_word(context.files.text(std::string(kThp) + "/defrag").value_or(""));
  if (enabled.empty()) return item.unknown("the kernel shows no transparent huge pages");
  if (enabled == "never") {
    return item.warn("never: large buffers live in 4 KiB pages and miss the TLB",
                     fmt::format("echo madvise > {}/enabled", kThp));
  }
  if (enabled == "always" && defrag == "always") {
    return item.warn("always, and a page fault may stop to compact memory",
                     fmt::format("echo madvise > {}/defrag", kThp));
  }
  return item.ok(enabled);
}

Finding reserved_huge_pages(const DoctorContext& context) {
  const Item item{"memory", "reserved huge pages"};
  const auto total = meminfo(context.files, "HugePages_Total");
  const auto available = meminfo(context.files, "HugePages_Free");
  const auto page_kib = meminfo(context.files, "Hugepagesize");
  const auto memory_kib = meminfo(context.files, "MemTotal");
  if (!total || !available || !page_kib || !memory_kib) {
    return item.unknown("/proc/meminfo does not count huge pages");
  }
  if (*total == 0) return item.ok("none reserved");
  const std::string held = format_bytes(1024.0 * static_cast<double>(*total * *page_kib));
  const std::int64_t idle_kib = *available * *page_kib;
  if (idle_kib * 10 > *memory_kib) {
    return item.warn(
        fmt::format("{} reserved, {} of it unused: ordinary memory is short by that much", held,
                    format_bytes(1024.0 * static_cast<double>(idle_kib))),
        fmt::format("sysctl -w vm.nr_hugepages={}", *total - *available));
  }
  return item.ok(fmt::format("{} reserved, {} pages free", held, *available));
}

Finding swap(const DoctorContext& context) {
  const Item item{"memory", "swap"};
  const auto total = meminfo(context.files, "SwapTotal");
  const auto left = meminfo(context.files, "SwapFree");
  if (!total || !left) return item.unknown("/proc/meminfo shows no swap");
  if (*total == 0) return item.ok("none");
  if (*left < *total) {
    return item.warn(fmt::format("{} is swapped out: touching it waits for the disk",
                                 format_bytes(1024.0 * static_cast<double>(*total - *left))),
                     "swapoff -a && swapon -a");
  }
  return item.ok(
      fmt::format("{} and all of it unused", format_bytes(1024.0 * static_cast<double>(*total))));
}

Finding swappiness(const DoctorContext& context) {
  const Item item{"memory", "swappiness"};
  constexpr std::int64_t kMost = 10;
  if (meminfo(context.files, "SwapTotal") == 0) return item.ok("no swap: it has no effect");
  const auto value = context.files.number("/proc/sys/vm/swappiness");
  if (!value) return item.unknown("vm.swappiness is not visible");
  if (*value <= kMost) return item.ok(std::to_string(*value));
  return item.warn(
      fmt::format("{}: the kernel swaps idle buffers out before its file cache is used up", *value),
      "sysctl -w vm.swappiness=1");
}

}  // namespace

std::vector<Finding> check_memory(const DoctorContext& context) {
  return {transparent_huge_pages(context), reserved_huge_pages(context), swap(context),
          swappiness(context)};
}

}  // namespace gauntlet::lab::doctor
