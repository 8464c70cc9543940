// Are the GPUs attached at full width, and are their CPUs ours?
#include <fmt/format.h>

#include <algorithm>

#include "core/machine/numa.h"
#include "core/os/system_files.h"
#include "lab/doctor/checks.h"

namespace gauntlet::lab::doctor {

std::vector<std::string> nvidia_pci_gpus(const SystemFiles& files) {
  std::vector<std::string> addresses;
  const std::string bus = "/sys/bus/pci/devices";
  for (const std::string& address : files.list(bus)) {
    const std::string device = bus + "/" + address;
    if (files.text(device + "/vendor") != "0x10de") continue;
    // Display controllers: VGA (0x0300..) and 3D (0x0302..); bridges and audio are not.
    if (files.text(device + "/class").value_or("").starts_with("0x03"))
      addresses.push_back(address);
  }
  return addresses;
}

namespace {

std::string device_folder(const std::string& address) { return "/sys/bus/pci/devices/" + address; }

Finding links(const DoctorContext& context, const std::vector<std::string>& gpus) {
  const Item item{"gpu", "pcie link"};
  std::string narrow, wide, fix;
  for (const std::string& address : gpus) {
    const std::string folder = device_folder(address);
    const auto width = context.files.number(folder + "/current_link_width");
    const auto most = context.files.number(folder + "/max_link_width");
    // Virtual machines show 0 or 63 where they know nothing.
    if (!width || !most || *width <= 0 || *most <= 0 || *most > 32) continue;
    const std::string speed = context.files.text(folder + "/current_link_speed").value_or("");
    std::string& list = *width < *most ? narrow : wide;
    list += fmt::format("{}{}: x{} of x{}, {}", list.empty() ? "" : "; ", address, *width, *most,
                        speed.empty() ? "speed unknown" : speed);
    if (*width < *most && fix.empty()) {
      fix = fmt::format("reseat the card or use a x{} slot; lspci -vv -s {} shows LnkSta", *most,
                        address);
    }
  }
  if (!narrow.empty()) return item.warn(narrow + ": host copies run at a part of the link", fix);
  if (wide.empty()) return item.unknown("no PCIe link is visible");
  return item.ok(wide + " (a GPU at rest may lower its speed)");
}

Finding affinity(const DoctorContext& context, const std::vector<std::string>& gpus) {
  const Item item{"gpu", "numa node"};
  if (numa_nodes(context.files).size() <= 1) return item.ok("one node");
  const std::set<int> ours = nodes_of(context.files, context.cpus);
  const auto bind_to = [](int node) {
    return fmt::format("numactl --cpunodebind={0} --membind={0} gauntlet ...", node);
  };
  std::set<int> theirs;
  std::string near;
  for (const std::string& address : gpus) {
    const auto node = node_of_pci(context.files, address);
    if (!node) continue;
    if (!ours.empty() && !ours.contains(*node)) {
      return item.warn(
          fmt::format("{} hangs on node {}, where this process may not run: copies cross sockets",
                      address, *node),
          bind_to(*node));
    }
    theirs.insert(*node);
    near += fmt::format("{}{} on node {}", near.empty() ? "" : ", ", address, *node);
  }
  if (near.empty()) return item.unknown("the kernel does not say which node the GPUs hang on");
  if (theirs.size() == 1 && ours.size() > 1) {
    return item.warn(
        fmt::format("{}, and this process may run on nodes {}: threads that feed it, and their "
                    "buffers, can be on another",
                    near, format_cpu_list({ours.begin(), ours.end()})),
        bind_to(*theirs.begin()));
  }
  return item.ok(near);
}

}  // namespace

std::vector<Finding> check_gpu_topology(const DoctorContext& context) {
  const auto gpus = nvidia_pci_gpus(context.files);
  return {links(context, gpus), affinity(context, gpus)};
}

}  // namespace gauntlet::lab::doctor
