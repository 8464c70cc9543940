// NUMA: which CPUs and memory belong together, binding memory to a node, and asking the kernel
// where its pages are.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/expected.h"
#include "core/os/system_files.h"

namespace gauntlet {

struct NumaNode {
  int id = 0;
  std::vector<int> cpus;
  std::vector<int> distances;  // to each node of the topology, in its order; may be empty
};

/// The nodes that have CPUs, by id.
struct NumaTopology {
  std::vector<NumaNode> nodes;

  static NumaTopology read(const SystemFiles& files);

  const NumaNode* of_cpu(int cpu) const;
  /// The nodes that hold some of these CPUs, with those alone.
  NumaTopology of_cpus(const std::vector<int>& cpus) const;
  /// The node that is farthest from this one: by the firmware's distances, and where it tells none
  /// the next one. Nothing where there is only one.
  std::optional<int> farthest_from(int node) const;
};

/// Where a thread's memory can be: by its side, and as far away as this machine allows.
struct NumaPlaces {
  int local = 0;
  int remote = 0;
};
/// Fails on a machine of one node, or where the CPU belongs to none.
Expected<NumaPlaces> places_of_cpu(const NumaTopology& topology, int cpu);
/// Of the CPU that the calling thread is on.
Expected<NumaPlaces> places_here();

/// The node of a PCI device, "0000:c1:00.0" or, as drivers write it, "0000:C1:00.0"; nothing where
/// the system does not say.
std::optional<int> node_of_pci(const SystemFiles& files, const std::string& address);

/// From now on pages of the whole pages in this range come from this node, and those that are there
/// move to it.
Expected<void> bind_memory(void* data, std::int64_t bytes, int node);
/// Of the pages of a range that are there, the share that is on a node, as the kernel says.
Expected<double> share_on_node(const void* data, std::int64_t bytes, int node);

}  // namespace gauntlet
