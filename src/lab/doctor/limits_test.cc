#include <gtest/gtest.h>

#include "lab/doctor/fake_machine.h"

namespace gauntlet::lab::doctor {
namespace {

constexpr std::int64_t kGiB = std::int64_t{1} << 30;

TEST(DoctorCpuQuota, warns_when_it_is_less_than_the_cpus) {
  FakeMachine machine;
  EXPECT_EQ(machine.find("limits", "cpu quota").level, Level::ok);
  machine.write("/proc/self/cgroup", "0::/\n").write("/sys/fs/cgroup/cpu.max", "400000 100000\n");
  EXPECT_EQ(machine.find("limits", "cpu quota").level, Level::ok);
  machine.write("/sys/fs/cgroup/cpu.max", "150000 100000\n")
      .write("/sys/fs/cgroup/cpu.stat", "nr_throttled 12\n");
  const Finding finding = machine.find("limits", "cpu quota");
  EXPECT_EQ(finding.level, Level::warn);
  EXPECT_TRUE(finding.reason.starts_with("1.5 cores for 4 CPUs")) << finding.reason;
  EXPECT_NE(finding.reason.find("12 periods"), std::string::npos) << finding.reason;
  EXPECT_NE(finding.fix.find("--cpuset-cpus=0-3"), std::string::npos) << finding.fix;
}

TEST(DoctorMemory, counts_what_is_available) {
  FakeMachine machine;
  EXPECT_EQ(machine.find("limits", "memory").level, Level::unknown);
  machine.write("/proc/meminfo", "MemAvailable: 8388608 kB\n");
  EXPECT_EQ(machine.find("limits", "memory").level, Level::ok);
  machine.write("/proc/meminfo", "MemAvailable: 1048576 kB\n");
  EXPECT_EQ(machine.find("limits", "memory").level, Level::warn);
  EXPECT_TRUE(machine.find("limits", "memory").fix.starts_with("free memory"));
}

TEST(DoctorMemory, stops_at_the_containers_limit) {
  FakeMachine machine;
  machine.write("/proc/meminfo", "MemAvailable: 33554432 kB\n")
      .write("/proc/self/cgroup", "0::/\n")
      .write("/sys/fs/cgroup/memory.max", std::to_string(8 * kGiB))
      .write("/sys/fs/cgroup/memory.current", std::to_string(1 * kGiB));
  EXPECT_EQ(machine.find("limits", "memory").level, Level::ok);
  machine.write("/sys/fs/cgroup/memory.current", std::to_string(6 * kGiB));
  const Finding finding = machine.find("limits", "memory");
  EXPECT_EQ(finding.level, Level::warn);
  EXPECT_TRUE(finding.reason.starts_with("2 GiB free under a limit of 8 GiB")) << finding.reason;
  EXPECT_NE(finding.fix.find("--memory"), std::string::npos);
}

std::string limits_file(const std::string& open_files, const std::string& locked) {
  return "Limit                     Soft Limit           Hard Limit           Units     \n"
         "Max open files            " +
         open_files +
         "                524288               files     \n"
         "Max locked memory         " +
         locked + "              8388608              bytes     \n";
}

TEST(DoctorUlimits, are_well_when_generous) {
  FakeMachine machine;
  machine.write("/proc/self/limits", limits_file("65536", "unlimited"));
  EXPECT_EQ(machine.find("limits", "open files").level, Level::ok);
  EXPECT_EQ(machine.find("limits", "locked memory").level, Level::ok);
}

TEST(DoctorUlimits, warn_when_tight) {
  FakeMachine machine;
  machine.write("/proc/self/limits", limits_file("1024", "8388608"));
  EXPECT_EQ(machine.find("limits", "open files").level, Level::warn);
  EXPECT_TRUE(machine.find("limits", "open files").fix.starts_with("ulimit -n 65536"));
  EXPECT_EQ(machine.find("limits", "locked memory").level, Level::warn);
  EXPECT_TRUE(machine.find("limits", "locked memory").fix.starts_with("ulimit -l unlimited"));
}

TEST(DoctorUlimits, do_not_bind_a_process_with_the_right_to_lock) {
  FakeMachine machine;
  machine.write("/proc/self/limits", limits_file("65536", "8388608"))
      .write("/proc/self/status", "Name:\tgauntlet\nCapEff:\t0000000000004000\n");
  EXPECT_EQ(machine.find("limits", "locked memory").level, Level::ok);
}

TEST(DoctorUlimits, are_unknown_without_the_file) {
  FakeMachine machine;
  EXPECT_EQ(machine.find("limits", "open files").level, Level::unknown);
  EXPECT_EQ(machine.find("limits", "locked memory").level, Level::unknown);
}

TEST(DoctorSharedMemory, warns_of_dockers_default) {
  FakeMachine machine;
  EXPECT_EQ(machine.find("limits", "shared memory").level, Level::unknown);
  machine.context.shared_memory = DiskSpace{.total_bytes = 8 * kGiB, .free_bytes = 8 * kGiB};
  EXPECT_EQ(machine.find("limits", "shared memory").level, Level::ok);
  machine.context.shared_memory = DiskSpace{.total_bytes = kGiB / 16, .free_bytes = kGiB / 16};
  const Finding finding = machine.find("limits", "shared memory");
  EXPECT_EQ(finding.level, Level::warn);
  EXPECT_NE(finding.fix.find("--shm-size=8g"), std::string::npos);
}

TEST(DoctorDisk, warns_when_it_is_nearly_full_and_fails_when_it_is) {
  FakeMachine machine;
  EXPECT_EQ(machine.find("limits", "free disk").level, Level::unknown);
  machine.context.disk = DiskSpace{.total_bytes = 100 * kGiB, .free_bytes = 50 * kGiB};
  EXPECT_EQ(machine.find("limits", "free disk").level, Level::ok);
  machine.context.disk->free_bytes = kGiB;
  EXPECT_EQ(machine.find("limits", "free disk").level, Level::warn);
  machine.context.disk->free_bytes = 1 << 20;
  const Finding finding = machine.find("limits", "free disk");
  EXPECT_EQ(finding.level, Level::fail);
  EXPECT_TRUE(finding.reason.starts_with("1 MiB free below /results")) << finding.reason;
}

}  // namespace
}  // namespace gauntlet::lab::doctor
