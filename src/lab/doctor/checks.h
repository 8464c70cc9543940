// The parts of the checklist, and what they share.
#pragma once
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "lab/doctor/doctor.h"

namespace gauntlet::lab::doctor {

std::vector<Finding> check_cpu(const DoctorContext& context);
std::vector<Finding> check_numa(const DoctorContext& context);
std::vector<Finding> check_memory(const DoctorContext& context);
std::vector<Finding> check_interrupts(const DoctorContext& context);
std::vector<Finding> check_limits(const DoctorContext& context);
std::vector<Finding> check_timing(const DoctorContext& context);
std::vector<Finding> check_profiling(const DoctorContext& context);
/// One line where there is no GPU.
std::vector<Finding> check_gpus(const DoctorContext& context);
/// PCIe links and the GPUs' NUMA nodes.
std::vector<Finding> check_gpu_topology(const DoctorContext& context);
/// Counters, and the libraries that are opened at run time.
std::vector<Finding> check_gpu_tools(const DoctorContext& context);

/// A line of the checklist, before its answer is known.
struct Item {
  std::string area;
  std::string name;

  Finding ok(std::string reason) const {
    return {area, name, Finding::Level::ok, std::move(reason), ""};
  }
  Finding warn(std::string reason, std::string fix) const {
    return {area, name, Finding::Level::warn, std::move(reason), std::move(fix)};
  }
  Finding fail(std::string reason, std::string fix) const {
    return {area, name, Finding::Level::fail, std::move(reason), std::move(fix)};
  }
  Finding unknown(std::string reason, std::string fix = "") const {
    return {area, name, Finding::Level::unknown, std::move(reason), std::move(fix)};
  }
};

/// Linux's numbers of the rights the checks ask about.
enum class Capability { ipc_lock = 14, sys_admin = 21, perfmon = 38 };
bool has_capability(const SystemFiles& files, Capability capability);

/// The NUMA nodes that have CPUs.
std::vector<int> numa_nodes(const SystemFiles& files);
/// The NUMA nodes that these CPUs belong to.
std::set<int> nodes_of(const SystemFiles& files, const std::vector<int>& cpus);

/// The PCI addresses of NVIDIA's GPUs.
std::vector<std::string> nvidia_pci_gpus(const SystemFiles& files);

}  // namespace gauntlet::lab::doctor
