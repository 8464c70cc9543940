#include "core/machine/host.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <optional>
#include <set>
#include <utility>

#include "core/os/cgroup.h"
#include "core/os/threads.h"
#include "core/text/text.h"

#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace gauntlet {
namespace {

constexpr const char* kCpuInfo = "/proc/cpuinfo";

/// ARM kernels give numbers instead of a model; these are the server cores.
std::string arm_model(const SystemFiles& files) {
  const auto implementer = files.field(kCpuInfo, "CPU implementer");
  const auto part = files.field(kCpuInfo, "CPU part");
  if (!implementer || !part) return "";
  struct Core {
    const char* part;
    const char* name;
  };
  constexpr std::array<Core, 4> kCores = {
      Core{"0xd0c", "ARM Neoverse N1"}, Core{"0xd40", "ARM Neoverse V1"},
      Core{"0xd49", "ARM Neoverse N2"}, Core{"0xd4f", "ARM Neoverse V2"}};
  for (const Core& core : kCores) {
    if (*implementer == "0x41" && *part == core.part) return core.name;
  }
  return fmt::format("ARM {} {}", *implementer, *part);
}

std::vector<std::string> simd_of(const SystemFiles& files) {
  auto flags = files.field(kCpuInfo, "flags");
  if (!flags) flags = files.field(kCpuInfo, "Features");
  const auto words = split_words(flags.value_or(""));
  const auto has = [&](const char* word) {
    return std::find(words.begin(), words.end(), word) != words.end();
  };
  std::vector<std::string> simd;
  for (const char* name : {"avx2", "avx512f", "avx512_vnni", "avx512_bf16", "amx_tile"}) {
    if (has(name)) simd.push_back(name);
  }
  if (has("neon") || has("asimd")) simd.push_back("neon");
  return simd;
}

/// "32K", "1024K", "32M" of sysfs.
std::int64_t cache_size(const std::string& text) {
  const std::int64_t number = leading_number(text).value_or(0);
  if (text.ends_with('K')) return number << 10;
  if (text.ends_with('M')) return number << 20;
  return number;
}

void read_caches(const SystemFiles& files, const std::vector<int>& cpus, CpuInfo& info) {
  std::int64_t last_level = 0;
  std::set<std::pair<std::int64_t, std::string>> seen;
  for (int cpu : cpus) {
    const std::string folder = fmt::format("/sys/devices/system/cpu/cpu{}/cache", cpu);
    for (const std::string& index : files.list(folder)) {
      if (!index.starts_with("index")) continue;
      const std::string cache = folder + "/" + index;
      const auto level = files.number(cache + "/level");
      if (!level || files.text(cache + "/type") == "Instruction") continue;
      const std::int64_t bytes = cache_size(files.text(cache + "/size").value_or(""));
      const std::string sharers =
          files.text(cache + "/shared_cpu_list").value_or(std::to_string(cpu));
      if (*level == 1) info.l1d_bytes = bytes;
      if (*level == 2) info.l2_bytes = bytes;
      if (*level > last_level) {
        last_level = *level;
        info.last_level_bytes = 0;
      }
      if (seen.insert({*level, sharers}).second && *level == last_level) {
        info.last_level_bytes += bytes;
      }
    }
  }
}

std::int64_t memory_of(const SystemFiles& files) {
  const auto total = files.field("/proc/meminfo", "MemTotal");
  const std::int64_t bytes = leading_number(total.value_or("")).value_or(0) << 10;
  const auto limit = read_cgroup_limits(files).memory_bytes;
  if (!limit) return bytes;
  return bytes == 0 ? *limit : std::min(bytes, *limit);
}

int numa_nodes_of(const SystemFiles& files) {
  // Memory without CPUs (a GPU's on GH200, CXL) is a node too, but no place to run on.
  for (const char* path : {"/sys/devices/system/node/has_cpu", "/sys/devices/system/node/online"}) {
    const auto list = files.text(path);
    if (!list) continue;
    if (const auto nodes = parse_cpu_list(*list); !nodes.empty()) {
      return static_cast<int>(nodes.size());
    }
  }
  return 1;
}

std::string os_of(const SystemFiles& files) {
  for (const char* path : {"/etc/os-release", "/usr/lib/os-release"}) {
    const auto text = files.text(path);
    for (const std::string& line : split_lines(text.value_or(""))) {
      constexpr std::string_view kKey = "PRETTY_NAME=";
      if (!line.starts_with(kKey)) continue;
      std::string name = line.substr(kKey.size());
      std::erase(name, '"');
      return name;
    }
  }
  return "Linux";
}

std::string hypervisor_of(const SystemFiles& files, const std::string& signature) {
  struct Known {
    const char* signature;
    const char* name;
  };
  constexpr std::array<Known, 6> kKnown = {
      Known{"KVMKVMKVM", "kvm"},       Known{"Microsoft Hv", "hyperv"},
      Known{"VMwareVMware", "vmware"}, Known{"XenVMMXenVMM", "xen"},
      Known{"TCGTCGTCGTCG", "qemu"},   Known{"Linux KVM Hv", "kvm"}};
  for (const Known& known : kKnown) {
    if (signature == known.signature) return known.name;
  }
  if (!signature.empty()) return slugify(signature);
  const auto words = split_words(files.field(kCpuInfo, "flags").value_or(""));
  return std::find(words.begin(), words.end(), "hypervisor") != words.end() ? "unknown" : "";
}

}  // namespace

HostProbe probe_host() {
  HostProbe probe{.cpus = allowed_cpus()};
#if defined(__x86_64__)
  unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
  constexpr unsigned kHypervisorBit = 1u << 31;
  if (__get_cpuid(1, &eax, &ebx, &ecx, &edx) && (ecx & kHypervisorBit)) {
    __cpuid(0x40000000, eax, ebx, ecx, edx);
    char text[13] = {};
    std::memcpy(text, &ebx, 4);
    std::memcpy(text + 4, &ecx, 4);
    std::memcpy(text + 8, &edx, 4);
    probe.hypervisor_signature = trim(text);
  }
#endif
  return probe;
}

MachineInfo read_host(const SystemFiles& files, const HostProbe& probe) {
  MachineInfo machine;
  machine.cpu.model = files.field(kCpuInfo, "model name").value_or("");
  if (machine.cpu.model.empty()) machine.cpu.model = arm_model(files);
  machine.cpu.cores = static_cast<int>(probe.cpus.size());
  machine.cpu.numa_nodes = numa_nodes_of(files);
  read_caches(files, probe.cpus, machine.cpu);
  machine.cpu.memory_bytes = memory_of(files);
  machine.cpu.simd = simd_of(files);
  machine.kernel = files.text("/proc/sys/kernel/osrelease").value_or("");
  machine.os = os_of(files);
  machine.hypervisor = hypervisor_of(files, probe.hypervisor_signature);
  return machine;
}

}  // namespace gauntlet
