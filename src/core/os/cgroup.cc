#include "core/os/cgroup.h"

#include <algorithm>
#include <string>
#include <vector>

#include "core/text/text.h"

namespace gauntlet {
namespace {

struct Group {
  std::string path;  // below the hierarchy's mount: "/", "/a/b"
  bool unified = false;
};

/// This process's groups: of a version 1 controller, of version 2, or both on a hybrid machine.
std::vector<Group> groups_of(const SystemFiles& files, const std::string& controller) {
  std::vector<Group> groups;
  const auto text = files.text("/proc/self/cgroup");
  for (const std::string& line : split_lines(text.value_or(""))) {
    const std::size_t first = line.find(':');
    const std::size_t second = first == std::string::npos ? first : line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string controllers = "," + line.substr(first + 1, second - first - 1) + ",";
    const std::string path = line.substr(second + 1);
    if (controllers == ",,") groups.push_back({.path = path, .unified = true});
    if (controllers.find("," + controller + ",") != std::string::npos) {
      groups.push_back({.path = path});
    }
  }
  return groups;
}

/// The folders of a group and of all above it. In a container the path may be the host's and lead
/// nowhere; its mount point, which is the container's own group, is always among them.
std::vector<std::string> folders_of(const SystemFiles& files, const std::string& controller) {
  std::vector<std::string> folders;
  for (const Group& group : groups_of(files, controller)) {
    std::vector<std::string> mounts = {"/sys/fs/cgroup/" + controller};
    if (controller == "cpu") mounts.push_back("/sys/fs/cgroup/cpu,cpuacct");
    if (group.unified) mounts = {"/sys/fs/cgroup", "/sys/fs/cgroup/unified"};
    for (const std::string& mount : mounts) {
      for (std::string path = group.path; !path.empty() && path != "/";
           path.resize(std::min(path.rfind('/'), path.size() - 1))) {
        folders.push_back(mount + path);
      }
      folders.push_back(mount);
    }
  }
  return folders;
}

std::optional<std::int64_t> stat_value(const SystemFiles& files, const std::string& path,
                                       const std::string& key) {
  const auto text = files.text(path);
  for (const std::string& line : split_lines(text.value_or(""))) {
    if (line.starts_with(key + " ")) return leading_number(line.substr(key.size() + 1));
  }
  return std::nullopt;
}

std::optional<std::int64_t> memory_used(const SystemFiles& files, const std::string& folder) {
  auto used = files.number(folder + "/memory.current");
  const char* cache_key = "inactive_file";
  if (!used) {
    used = files.number(folder + "/memory.usage_in_bytes");
    cache_key = "total_inactive_file";
  }
  if (!used) return std::nullopt;
  // The kernel gives this part back before it kills anything.
  const auto cache = stat_value(files, folder + "/memory.stat", cache_key);
  return std::max<std::int64_t>(0, *used - cache.value_or(0));
}

std::optional<double> cpu_quota(const SystemFiles& files, const std::string& folder) {
  if (const auto text = files.text(folder + "/cpu.max")) {
    const auto words = split_words(*text);
    if (words.size() < 2) return std::nullopt;
    const auto quota = leading_number(words[0]), period = leading_number(words[1]);
    if (!quota || !period || *period <= 0) return std::nullopt;
    return static_cast<double>(*quota) / static_cast<double>(*period);
  }
  const auto quota = files.number(folder + "/cpu.cfs_quota_us");
  const auto period = files.number(folder + "/cpu.cfs_period_us");
  if (!quota || !period || *quota <= 0 || *period <= 0) return std::nullopt;
  return static_cast<double>(*quota) / static_cast<double>(*period);
}

}  // namespace

CgroupLimits read_cgroup_limits(const SystemFiles& files) {
  // Version 1 writes "no limit" as the largest page-aligned number.
  constexpr std::int64_t kNoLimit = std::int64_t{1} << 62;
  CgroupLimits limits;
  for (const std::string& folder : folders_of(files, "memory")) {
    auto limit = files.number(folder + "/memory.max");
    if (!limit) limit = files.number(folder + "/memory.limit_in_bytes");
    if (!limit || *limit >= kNoLimit) continue;
    if (limits.memory_bytes && *limits.memory_bytes <= *limit) continue;
    limits.memory_bytes = limit;
    limits.memory_used_bytes = memory_used(files, folder);
  }
  for (const std::string& folder : folders_of(files, "cpu")) {
    const auto cores = cpu_quota(files, folder);
    if (!cores || (limits.cpu_cores && *limits.cpu_cores <= *cores)) continue;
    limits.cpu_cores = cores;
    limits.throttled_periods = stat_value(files, folder + "/cpu.stat", "nr_throttled").value_or(0);
  }
  return limits;
}

}  // namespace gauntlet
