// Is memory near the cores that use it, and does it stay there?
#include <fmt/format.h>

#include <algorithm>

#include "core/os/system_files.h"
#include "core/text/text.h"
#include "lab/doctor/checks.h"

namespace gauntlet::lab::doctor {

std::vector<int> numa_nodes(const SystemFiles& files) {
  auto list = files.text("/sys/devices/system/node/has_cpu");
  if (!list) list = files.text("/sys/devices/system/node/online");
  return parse_cpu_list(list.value_or("0"));
}

std::set<int> nodes_of(const SystemFiles& files, const std::vector<int>& cpus) {
  std::set<int> nodes;
  for (int node : numa_nodes(files)) {
    const auto list = files.text(fmt::format("/sys/devices/system/node/node{}/cpulist", node));
    for (int cpu : parse_cpu_list(list.value_or(""))) {
      if (std::find(cpus.begin(), cpus.end(), cpu) != cpus.end()) nodes.insert(node);
    }
  }
  return nodes;
}

namespace {

std::string list_of(const std::set<int>& nodes) {
  return format_cpu_list(std::vector<int>(nodes.begin(), nodes.end()));
}

Finding placement(const DoctorContext& context) {
  const Item item{"numa", "nodes"};
  const std::size_t count = numa_nodes(context.files).size();
  if (count <= 1) return item.ok("one node: all memory is equally near");
  const std::set<int> ours = nodes_of(context.files, context.cpus);
  if (ours.empty())
    return item.unknown(fmt::format("{} nodes, but not which CPUs they hold", count));
  if (ours.size() == 1) {
    return item.ok(fmt::format("{} nodes; this process stays on node {}", count, list_of(ours)));
  }
  return item.warn(
      fmt::format("{} nodes; this process may run on {}: threads and their memory can part", count,
                  list_of(ours)),
      fmt::format("numactl --cpunodebind={0} --membind={0} gauntlet ...", *ours.begin()));
}

Finding balancing(const DoctorContext& context) {
  const Item item{"numa", "balancing"};
  if (numa_nodes(context.files).size() <= 1) return item.ok("one node: nothing to balance");
  const auto value = context.files.number("/proc/sys/kernel/numa_balancing");
  if (!value) return item.unknown("kernel.numa_balancing is not visible");
  if (*value == 0) return item.ok("off: pages stay where they are");
  return item.warn("on: the kernel unmaps and moves pages while they are measured",
                   "sysctl -w kernel.numa_balancing=0");
}

/// "interleave:0-1" or "bind=static:0" -> its mode and nodes.
struct MemoryPolicy {
  std::string mode;
  std::vector<int> nodes;
};

MemoryPolicy parse_policy(const std::string& word) {
  const std::size_t colon = word.find(':');
  if (colon == std::string::npos) return {.mode = word};
  return {.mode = word.substr(0, std::min(word.find('='), colon)),
          .nodes = parse_cpu_list(word.substr(colon + 1))};
}

Finding memory_policy(const DoctorContext& context) {
  const Item item{"numa", "memory policy"};
  if (numa_nodes(context.files).size() <= 1) return item.ok("one node: no choice to make");
  const auto maps = context.files.text("/proc/self/numa_maps");
  const auto words = split_words(split_lines(maps.value_or("") + "\n").front());
  if (words.size() < 2) return item.unknown("/proc/self/numa_maps is not readable");
  const MemoryPolicy policy = parse_policy(words[1]);
  const std::set<int> ours = nodes_of(context.files, context.cpus);
  const std::string bind_here =
      ours.empty()
          ? "numactl --localalloc gauntlet ..."
          : fmt::format("numactl --cpunodebind={0} --membind={0} gauntlet ...", list_of(ours));
  if (policy.mode.find("interleave") != std::string::npos && ours.size() == 1) {
    return item.warn(
        fmt::format("pages are interleaved over nodes {} but the threads stay on node {}: every "
                    "other access is remote",
                    format_cpu_list(policy.nodes), list_of(ours)),
        bind_here);
  }
  const bool remote_only = !policy.nodes.empty() && !ours.empty() &&
                           std::none_of(policy.nodes.begin(), policy.nodes.end(),
                                        [&](int node) { return ours.contains(node); });
  if (remote_only) {
    return item.warn(fmt::format("memory comes from node {} and the threads run on node {}",
                                 format_cpu_list(policy.nodes), list_of(ours)),
                     bind_here);
  }
  if (policy.mode == "default" || policy.mode == "local") {
    return item.ok("pages land on the node of the thread that first touches them");
  }
  return item.ok(fmt::format("{} over nodes {}", policy.mode, format_cpu_list(policy.nodes)));
}

}  // namespace

std::vector<Finding> check_numa(const DoctorContext& context) {
  return {placement(context), balancing(context), memory_policy(context)};
}

}  // namespace gauntlet::lab::doctor
