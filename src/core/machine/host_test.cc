#include "core/machine/host.h"

#include <gtest/gtest.h>

#include "core/os/fake_tree.h"

namespace gauntlet {
namespace {

constexpr std::int64_t kMiB = 1 << 20;

void write_cache(FakeTree& tree, int cpu, const std::string& index, const std::string& level,
                 const std::string& type, const std::string& size, const std::string& sharers) {
  const std::string folder =
      "/sys/devices/system/cpu/cpu" + std::to_string(cpu) + "/cache/" + index;
  tree.write(folder + "/level", level)
      .write(folder + "/type", type)
      .write(folder + "/size", size)
      .write(folder + "/shared_cpu_list", sharers);
}

/// Four CPUs, two of them per last-level cache.
void write_server(FakeTree& tree) {
  tree.write("/proc/cpuinfo",
             "processor\t: 0\nmodel name\t: AMD EPYC 9654 96-Core Processor\n"
             "flags\t\t: fpu avx2 avx512f avx512_vnni avx512_bf16 hypervisor\n")
      .write("/proc/meminfo", "MemTotal:       1048576 kB\n")
      .write("/proc/sys/kernel/osrelease", "6.1.0-18-amd64\n")
      .write("/etc/os-release", "NAME=\"Debian\"\nPRETTY_NAME=\"Debian GNU/Linux 12\"\n")
      .write("/sys/devices/system/node/has_cpu", "0-1\n")
      .write("/sys/devices/system/node/online", "0-3\n");
  for (int cpu = 0; cpu < 4; ++cpu) {
    const std::string self = std::to_string(cpu);
    write_cache(tree, cpu, "index0", "1", "Data", "32K", self);
    write_cache(tree, cpu, "index1", "1", "Instruction", "64K", self);
    write_cache(tree, cpu, "index2", "2", "Unified", "1024K", self);
    write_cache(tree, cpu, "index3", "3", "Unified", "32768K", cpu < 2 ? "0-1" : "2-3");
  }
}

TEST(Host, is_read_from_proc_and_sys) {
  FakeTree tree;
  write_server(tree);
  const MachineInfo machine = read_host(
      SystemFiles(tree.root()), {.cpus = {0, 1, 2, 3}, .hypervisor_signature = "KVMKVMKVM"});
  EXPECT_EQ(machine.cpu.model, "AMD EPYC 9654 96-Core Processor");
  EXPECT_EQ(machine.cpu.cores, 4);
  EXPECT_EQ(machine.cpu.numa_nodes, 2);
  EXPECT_EQ(machine.cpu.l1d_bytes, 32 << 10);
  EXPECT_EQ(machine.cpu.l2_bytes, kMiB);
  EXPECT_EQ(machine.cpu.memory_bytes, 1024 * kMiB);
  EXPECT_EQ(machine.cpu.simd,
            (std::vector<std::string>{"avx2", "avx512f", "avx512_vnni", "avx512_bf16"}));
  EXPECT_EQ(machine.kernel, "6.1.0-18-amd64");
  EXPECT_EQ(machine.os, "Debian GNU/Linux 12");
  EXPECT_EQ(machine.hypervisor, "kvm");
}

TEST(Host, counts_the_last_level_caches_its_cpus_reach) {
  FakeTree tree;
  write_server(tree);
  const SystemFiles files(tree.root());
  EXPECT_EQ(read_host(files, {.cpus = {0, 1, 2, 3}}).cpu.last_level_bytes, 64 * kMiB);
  EXPECT_EQ(read_host(files, {.cpus = {2, 3}}).cpu.last_level_bytes, 32 * kMiB);
}

TEST(Host, takes_level_2_as_the_last_where_there_is_no_level_3) {
  FakeTree tree;
  write_cache(tree, 0, "index0", "1", "Data", "64K", "0");
  write_cache(tree, 0, "index2", "2", "Unified", "2M", "0");
  EXPECT_EQ(read_host(SystemFiles(tree.root()), {.cpus = {0}}).cpu.last_level_bytes, 2 * kMiB);
}

TEST(Host, has_no_more_memory_than_its_container) {
  FakeTree tree;
  write_server(tree);
  tree.write("/proc/self/cgroup", "0::/\n").write("/sys/fs/cgroup/memory.max", "268435456\n");
  EXPECT_EQ(read_host(SystemFiles(tree.root()), {.cpus = {0}}).cpu.memory_bytes, 256 * kMiB);
}

TEST(Host, names_arm_cores) {
  FakeTree tree;
  tree.write(
      "/proc/cpuinfo",
      "processor\t: 0\nFeatures\t: fp asimd sve2\nCPU implementer\t: 0x41\nCPU part\t: 0xd4f\n");
  const MachineInfo machine = read_host(SystemFiles(tree.root()), {.cpus = {0}});
  EXPECT_EQ(machine.cpu.model, "ARM Neoverse V2");
  EXPECT_EQ(machine.cpu.simd, (std::vector<std::string>{"neon"}));
  EXPECT_EQ(machine.hypervisor, "");
}

TEST(Host, knows_a_hypervisor_by_the_flag_alone) {
  FakeTree tree;
  write_server(tree);
  EXPECT_EQ(read_host(SystemFiles(tree.root()), {.cpus = {0}}).hypervisor, "unknown");
}

TEST(Host, survives_an_empty_tree) {
  FakeTree tree;
  const MachineInfo machine = read_host(SystemFiles(tree.root()), {.cpus = {0}});
  EXPECT_EQ(machine.cpu.numa_nodes, 1);
  EXPECT_EQ(machine.cpu.memory_bytes, 0);
  EXPECT_EQ(machine.os, "Linux");
}

}  // namespace
}  // namespace gauntlet
