#include "core/machine/numa.h"

#include <fmt/format.h>
#include <linux/mempolicy.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cerrno>
#include <cstring>
#include <iterator>

#include "core/check.h"
#include "core/text/text.h"

namespace gauntlet {
namespace {

constexpr int kMostNodes = 1024;
constexpr int kNodesPerWord = 64;
constexpr std::uintptr_t kPageBytes = 4096;

/// The whole pages of a range.
struct WholePages {
  std::uintptr_t begin = 0;
  std::uintptr_t end = 0;
};

WholePages whole_pages(const void* data, std::int64_t bytes) {
  const auto from = reinterpret_cast<std::uintptr_t>(data);
  const std::uintptr_t begin = (from + kPageBytes - 1) / kPageBytes * kPageBytes;
  const std::uintptr_t end = (from + static_cast<std::uintptr_t>(bytes)) / kPageBytes * kPageBytes;
  return {begin, std::max(begin, end)};
}

}  // namespace

NumaTopology NumaTopology::read(const SystemFiles& files) {
  const std::string folder = "/sys/devices/system/node";
  auto ids = files.text(folder + "/has_cpu");
  if (!ids) ids = files.text(folder + "/online");
  NumaTopology topology;
  for (const int id : parse_cpu_list(ids.value_or("0"))) {
    const std::string node = fmt::format("{}/node{}", folder, id);
    NumaNode found{.id = id, .cpus = parse_cpu_list(files.text(node + "/cpulist").value_or(""))};
    for (const std::string& word : split_words(files.text(node + "/distance").value_or(""))) {
      found.distances.push_back(static_cast<int>(leading_number(word).value_or(0)));
    }
    topology.nodes.push_back(std::move(found));
  }
  // Nodes without CPUs have distances, too: whose is whose is known only without them.
  for (NumaNode& node : topology.nodes) {
    if (node.distances.size() != topology.nodes.size()) node.distances.clear();
  }
  return topology;
}

const NumaNode* NumaTopology::of_cpu(int cpu) const {
  const auto found = std::ranges::find_if(nodes, [&](const NumaNode& node) {
    return std::ranges::find(node.cpus, cpu) != node.cpus.end();
  });
  return found == nodes.end() ? nullptr : &*found;
}

NumaTopology NumaTopology::of_cpus(const std::vector<int>& cpus) const {
  const auto held = [&](const NumaNode& node) {
    std::vector<int> some;
    std::ranges::copy_if(node.cpus, std::back_inserter(some),
                         [&](int cpu) { return std::ranges::find(cpus, cpu) != cpus.end(); });
    return some;
  };
  NumaTopology kept;
  for (const NumaNode& node : nodes) {
    NumaNode own{.id = node.id, .cpus = held(node)};
    if (own.cpus.empty()) continue;
    for (std::size_t i = 0; i < node.distances.size(); ++i) {
      if (!held(nodes[i]).empty()) own.distances.push_back(node.distances[i]);
    }
    kept.nodes.push_back(std::move(own));
  }
  return kept;
}

std::optional<int> NumaTopology::farthest_from(int node) const {
  const auto from = std::ranges::find(nodes, node, &NumaNode::id);
  if (from == nodes.end() || nodes.size() < 2) return std::nullopt;
  const auto here = static_cast<std::size_t>(from - nodes.begin());
  std::size_t best = (here + 1) % nodes.size();
  for (std::size_t i = 0; i < from->distances.size(); ++i) {
    if (i != here && from->distances[i] > from->distances[best]) best = i;
  }
  return nodes[best].id;
}

Expected<NumaPlaces> places_of_cpu(const NumaTopology& topology, int cpu) {
  const NumaNode* local = topology.of_cpu(cpu);
  if (local == nullptr) return Error{fmt::format("CPU {} is in no NUMA node that is shown", cpu)};
  const auto remote = topology.farthest_from(local->id);
  if (!remote) return Error{"this machine has one NUMA node: no memory is farther than other"};
  return NumaPlaces{.local = local->id, .remote = *remote};
}

Expected<NumaPlaces> places_here() {
  return places_of_cpu(NumaTopology::read(SystemFiles()), sched_getcpu());
}

std::optional<int> node_of_pci(const SystemFiles& files, const std::string& address) {
  std::string folder = address;
  std::ranges::transform(folder, folder.begin(), [](unsigned char letter) {
    return static_cast<char>(std::tolower(letter));
  });
  const auto node = files.number("/sys/bus/pci/devices/" + folder + "/numa_node");
  if (!node || *node < 0) return std::nullopt;
  return static_cast<int>(*node);
}

Expected<void> bind_memory(void* data, std::int64_t bytes, int node) {
  check(node >= 0 && node < kMostNodes, "a NUMA node's number");
  const WholePages pages = whole_pages(data, bytes);
  if (pages.begin == pages.end) return {};
  std::array<std::uint64_t, kMostNodes / kNodesPerWord> mask{};
  mask[static_cast<std::size_t>(node) / kNodesPerWord] = std::uint64_t{1} << node % kNodesPerWord;
  // The kernel takes one bit less than it is told.
  if (::syscall(SYS_mbind, pages.begin, pages.end - pages.begin, MPOL_BIND, mask.data(),
                kMostNodes + 1, MPOL_MF_MOVE | MPOL_MF_STRICT) == 0) {
    return {};
  }
  return Error{
      fmt::format("memory cannot be bound to NUMA node {} ({}): in a container, allow mbind "
                  "(docker run --cap-add SYS_NICE) and the node (--cpuset-mems)",
                  node, std::strerror(errno))};
}

Expected<double> share_on_node(const void* data, std::int64_t bytes, int node) {
  const WholePages range = whole_pages(data, bytes);
  const auto from = reinterpret_cast<std::uintptr_t>(data);
  auto* const bytes_from = static_cast<unsigned char*>(const_cast<void*>(data));
  std::vector<void*> pages;
  for (std::uintptr_t at = range.begin; at < range.end; at += kPageBytes) {
    pages.push_back(bytes_from + (at - from));
  }
  std::vector<int> status(pages.size(), -ENOENT);
  // Without nodes to move to, it only says where pages are.
  if (::syscall(SYS_move_pages, 0, pages.size(), pages.data(), nullptr, status.data(), 0) < 0) {
    return Error{
        fmt::format("the kernel does not say where pages are ({}): in a container, allow "
                    "move_pages (docker run --cap-add SYS_NICE)",
                    std::strerror(errno))};
  }
  const auto there = std::ranges::count_if(status, [](int at) { return at >= 0; });
  if (there == 0) return Error{"no page of this memory is there yet"};
  const auto on_node = std::ranges::count(status, node);
  return static_cast<double>(on_node) / static_cast<double>(there);
}

}  // namespace gauntlet
