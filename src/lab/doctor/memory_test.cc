#include <gtest/gtest.h>

#include "lab/doctor/fake_machine.h"

namespace gauntlet::lab::doctor {
namespace {

constexpr const char* kEnabled = "/sys/kernel/mm/transparent_hugepage/enabled";
constexpr const char* kDefrag = "/sys/kernel/mm/transparent_hugepage/defrag";

TEST(DoctorHugePages, accepts_madvise_and_warns_of_never) {
  FakeMachine machine;
  EXPECT_EQ(machine.find("memory", "transparent huge pages").level, Level::unknown);
  machine.write(kEnabled, "always [madvise] never\n");
  EXPECT_EQ(machine.find("memory", "transparent huge pages").level, Level::ok);
  machine.write(kEnabled, "always madvise [never]\n");
  const Finding finding = machine.find("memory", "transparent huge pages");
  EXPECT_EQ(finding.level, Level::warn);
  EXPECT_EQ(finding.fix, std::string("echo madvise > ") + kEnabled);
}

TEST(DoctorHugePages, warns_of_page_faults_that_compact_memory) {
  FakeMachine machine;
  machine.write(kEnabled, "[always] madvise never\n")
      .write(kDefrag, "always defer defer+madvise [madvise] never\n");
  EXPECT_EQ(machine.find("memory", "transparent huge pages").level, Level::ok);
  machine.write(kDefrag, "[always] defer defer+madvise madvise never\n");
  EXPECT_EQ(machine.find("memory", "transparent huge pages").fix,
            std::string("echo madvise > ") + kDefrag);
}

std::string meminfo(int reserved, int unused) {
  return "MemTotal: 1048576 kB\nHugePages_Total: " + std::to_string(reserved) +
         "\nHugePages_Free: " + std::to_string(unused) + "\nHugepagesize: 2048 kB\n";
}

TEST(DoctorHugePages, warns_of_a_large_reserve_that_nobody_uses) {
  FakeMachine machine;
  EXPECT_EQ(machine.find("memory", "reserved huge pages").level, Level::unknown);
  machine.write("/proc/meminfo", meminfo(0, 0));
  EXPECT_EQ(machine.find("memory", "reserved huge pages").level, Level::ok);
  machine.write("/proc/meminfo", meminfo(256, 10));
  EXPECT_EQ(machine.find("memory", "reserved huge pages").level, Level::ok);
  machine.write("/proc/meminfo", meminfo(256, 200));
  const Finding finding = machine.find("memory", "reserved huge pages");
  EXPECT_EQ(finding.level, Level::warn);
  EXPECT_EQ(finding.fix, "sysctl -w vm.nr_hugepages=56");
}

TEST(DoctorSwap, is_well_without_swap_or_with_all_of_it_unused) {
  FakeMachine machine;
  EXPECT_EQ(machine.find("memory", "swap").level, Level::unknown);
  machine.write("/proc/meminfo", "SwapTotal: 0 kB\nSwapFree: 0 kB\n")
      .write("/proc/sys/vm/swappiness", "60\n");
  EXPECT_EQ(machine.find("memory", "swap").level, Level::ok);
  EXPECT_EQ(machine.find("memory", "swappiness").level, Level::ok);
  machine.write("/proc/meminfo", "SwapTotal: 2048 kB\nSwapFree: 2048 kB\n");
  EXPECT_EQ(machine.find("memory", "swap").level, Level::ok);
}

TEST(DoctorSwap, warns_of_what_is_swapped_out) {
  FakeMachine machine;
  machine.write("/proc/meminfo", "SwapTotal: 2048 kB\nSwapFree: 1024 kB\n");
  const Finding finding = machine.find("memory", "swap");
  EXPECT_EQ(finding.level, Level::warn);
  EXPECT_TRUE(finding.reason.starts_with("1 MiB is swapped out")) << finding.reason;
  EXPECT_FALSE(finding.fix.empty());
}

TEST(DoctorSwap, warns_of_a_kernel_eager_to_swap) {
  FakeMachine machine;
  machine.write("/proc/meminfo", "SwapTotal: 2048 kB\nSwapFree: 2048 kB\n");
  EXPECT_EQ(machine.find("memory", "swappiness").level, Level::unknown);
  machine.write("/proc/sys/vm/swappiness", "10\n");
  EXPECT_EQ(machine.find("memory", "swappiness").level, Level::ok);
  machine.write("/proc/sys/vm/swappiness", "60\n");
  EXPECT_EQ(machine.find("memory", "swappiness").level, Level::warn);
  EXPECT_EQ(machine.find("memory", "swappiness").fix, "sysctl -w vm.swappiness=1");
}

}  // namespace
}  // namespace gauntlet::lab::doctor
