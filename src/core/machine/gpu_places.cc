#include "core/machine/gpu_places.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/machine/gpu_driver.h"
#include "core/os/threads.h"

namespace gauntlet {

Expected<GpuPlaces> places_of_gpu(const SystemFiles& files, const std::string& address,
                                  const std::vector<int>& cpus) {
  const auto node = node_of_pci(files, address);
  if (!node) {
    return Error{
        fmt::format("the system does not say which node GPU {} hangs on (its numa_node in "
                    "/sys/bus/pci/devices is -1 or missing): use bare metal, or give the virtual "
                    "machine a PCI bus per node",
                    address)};
  }
  const NumaTopology ours = NumaTopology::read(files).of_cpus(cpus);
  const auto with_id = [&](int id) { return std::ranges::find(ours.nodes, id, &NumaNode::id); };
  const auto near = with_id(*node);
  if (near == ours.nodes.end()) {
    return Error{
        fmt::format("GPU {} hangs on node {}, and this process may run on none of its CPUs: let "
                    "it (taskset, docker run --cpuset-cpus)",
                    address, *node)};
  }
  const auto far = ours.farthest_from(*node);
  if (!far) {
    return Error{
        fmt::format("GPU {} hangs on node {}, and this process may run on no other node: let it "
                    "run on two (taskset, docker run --cpuset-cpus)",
                    address, *node)};
  }
  return GpuPlaces{.near = *near, .far = *with_id(*far)};
}

Expected<GpuPlaces> places_of_first_gpu() {
  const auto address = gpu_pci_address();
  if (!address) return address.error();
  return places_of_gpu(SystemFiles(), *address, allowed_cpus());
}

}  // namespace gauntlet
