// What a container or a shell withholds: CPU time, memory, locked memory, shared memory, open
// files, disk.
#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "core/os/cgroup.h"
#include "core/os/system_files.h"
#include "core/text/text.h"
#include "lab/doctor/checks.h"

namespace gauntlet::lab::doctor {
namespace {

constexpr std::int64_t kGiB = std::int64_t{1} << 30;

std::string bytes(std::int64_t count) { return format_bytes(static_cast<double>(count)); }

Finding cpu_quota(const DoctorContext& context, const CgroupLimits& limits) {
  const Item item{"limits", "cpu quota"};
  const auto cpus = static_cast<double>(context.cpus.size());
  if (!limits.cpu_cores) return item.ok("none");
  if (*limits.cpu_cores >= cpus) {
    return item.ok(fmt::format("{:.3g} cores for {} CPUs", *limits.cpu_cores, context.cpus.size()));
  }
  return item.warn(
      fmt::format("{:.3g} cores for {} CPUs: threads are stopped in mid-measurement (so far in {} "
                  "periods)",
                  *limits.cpu_cores, context.cpus.size(), limits.throttled_periods),
      fmt::format(
          "give whole cores instead of a quota: docker run --cpuset-cpus={} without --cpus, "
          "or Kubernetes' static CPU manager policy",
          format_cpu_list(context.cpus)));
}

Finding memory(const DoctorContext& context, const CgroupLimits& limits) {
  const Item item{"limits", "memory"};
  constexpr std::int64_t kWanted = 4 * kGiB;
  const auto available =
      leading_number(context.files.field("/proc/meminfo", "MemAvailable").value_or(""));
  std::optional<std::int64_t> left;
  std::string fix = "free memory: ps -eo pid,rss,comm --sort=-rss | head shows who holds it";
  if (available) left = *available << 10;
  if (limits.memory_bytes) {
    const std::int64_t below = *limits.memory_bytes - limits.memory_used_bytes.value_or(0);
    if (!left || below < *left) {
      left = below;
      fix = "docker run --memory=16g, or resources.limits.memory of the pod";
    }
  }
  if (!left) return item.unknown("/proc/meminfo does not say what is available");
  const std::string reason =
      bytes(*left) + " free" +
      (limits.memory_bytes ? " under a limit of " + bytes(*limits.memory_bytes) : "");
  if (*left >= kWanted) return item.ok(reason);
  return item.warn(reason + ": large targets may be killed", fix);
}

/// The soft limit of a line of /proc/self/limits.
std::optional<std::string> soft_limit(const SystemFiles& files, const std::string& name) {
  const auto text = files.text("/proc/self/limits");
  for (const std::string& line : split_lines(text.value_or(""))) {
    if (!line.starts_with(name + " ")) continue;
    const auto words = split_words(line.substr(name.size()));
    if (!words.empty()) return words[0];
  }
  return std::nullopt;
}

Finding locked_memory(const DoctorContext& context) {
  const Item item{"limits", "locked memory"};
  constexpr std::int64_t kWanted = kGiB;
  const auto limit = soft_limit(context.files, "Max locked memory");
  if (!limit) return item.unknown("/proc/self/limits is not readable");
  if (*limit == "unlimited") return item.ok("unlimited");
  const std::int64_t allowed = leading_number(*limit).value_or(0);
  if (has_capability(context.files, Capability::ipc_lock)) {
    return item.ok(bytes(allowed) + ", which does not bind this process (CAP_IPC_LOCK)");
  }
  if (allowed >= kWanted) return item.ok(bytes(allowed));
  return item.warn(bytes(allowed) + ": RDMA buffers and mlock beyond it are refused",
                   "ulimit -l unlimited (docker run --ulimit memlock=-1)");
}

Finding shared_memory(const DoctorContext& context) {
  const Item item{"limits", "shared memory"};
  if (!context.shared_memory) return item.unknown("/dev/shm is not there");
  const std::string reason = "/dev/shm holds " + bytes(context.shared_memory->total_bytes) + ", " +
                             bytes(context.shared_memory->free_bytes) + " free";
  if (context.shared_memory->free_bytes >= kGiB) return item.ok(reason);
  return item.warn(reason + ": ranks that share a machine (NCCL, MPI) run out",
                   "docker run --shm-size=8g, or mount -o remount,size=8g /dev/shm");
}

Finding open_files(const DoctorContext& context) {
  const Item item{"limits", "open files"};
  constexpr std::int64_t kWanted = 4096;
  const auto limit = soft_limit(context.files, "Max open files");
  if (!limit) return item.unknown("/proc/self/limits is not readable");
  if (*limit == "unlimited" || leading_number(*limit).value_or(0) >= kWanted) {
    return item.ok(*limit);
  }
  return item.warn(*limit + ": a server or a load of thousands of streams runs out",
                   "ulimit -n 65536 (docker run --ulimit nofile=65536)");
}

Finding disk(const DoctorContext& context) {
  const Item item{"limits", "free disk"};
  if (!context.disk) return item.unknown(context.folder + " cannot be asked for its free space");
  const std::string reason = bytes(context.disk->free_bytes) + " free below " + context.folder;
  const std::string fix = "choose a folder on another disk: --artifacts-dir FOLDER";
  if (context.disk->free_bytes < kGiB / 16)
    return item.fail(reason + ": results will not fit", fix);
  if (context.disk->free_bytes < 4 * kGiB) {
    return item.warn(reason + ": traces and models may not fit", fix);
  }
  return item.ok(reason);
}

}  // namespace

std::vector<Finding> check_limits(const DoctorContext& context) {
  const CgroupLimits limits = read_cgroup_limits(context.files);
  return {cpu_quota(context, limits), memory(context, limits), locked_memory(context),
          shared_memory(context),     open_files(context),     disk(context)};
}

}  // namespace gauntlet::lab::doctor
