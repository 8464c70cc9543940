#include <gtest/gtest.h>

#include "lab/doctor/fake_machine.h"

namespace gauntlet::lab::doctor {
namespace {

TEST(DoctorNuma, is_well_on_one_node_whatever_the_settings) {
  FakeMachine machine;
  machine.write("/sys/devices/system/node/has_cpu", "0\n")
      .write("/proc/sys/kernel/numa_balancing", "1\n")
      .write("/proc/self/numa_maps", "5555 interleave:0 heap\n");
  for (const char* name : {"nodes", "balancing", "memory policy"}) {
    EXPECT_EQ(machine.find("numa", name).level, Level::ok) << name;
  }
}

TEST(DoctorNuma, is_well_when_the_process_stays_on_one_of_two_nodes) {
  FakeMachine machine;
  machine.write_two_nodes();
  EXPECT_EQ(machine.find("numa", "nodes").level, Level::ok);
}

TEST(DoctorNuma, warns_when_the_process_may_wander) {
  FakeMachine machine;
  machine.write_two_nodes();
  machine.context.cpus = {2, 3, 4, 5};
  const Finding finding = machine.find("numa", "nodes");
  EXPECT_EQ(finding.level, Level::warn);
  EXPECT_EQ(finding.fix, "numactl --cpunodebind=0 --membind=0 gauntlet ...");
}

TEST(DoctorNuma, warns_of_balancing_and_not_of_its_absence) {
  FakeMachine machine;
  machine.write_two_nodes();
  EXPECT_EQ(machine.find("numa", "balancing").level, Level::unknown);
  machine.write("/proc/sys/kernel/numa_balancing", "0\n");
  EXPECT_EQ(machine.find("numa", "balancing").level, Level::ok);
  machine.write("/proc/sys/kernel/numa_balancing", "1\n");
  const Finding finding = machine.find("numa", "balancing");
  EXPECT_EQ(finding.level, Level::warn);
  EXPECT_EQ(finding.fix, "sysctl -w kernel.numa_balancing=0");
}

Level policy_level(const std::string& policy) {
  FakeMachine machine;
  machine.write_two_nodes().write("/proc/self/numa_maps",
                                  "5555 " + policy + " heap\n6666 default stack\n");
  return machine.find("numa", "memory policy").level;
}

TEST(DoctorNuma, judges_the_memory_policy_by_where_the_threads_run) {
  EXPECT_EQ(policy_level("default"), Level::ok);
  EXPECT_EQ(policy_level("bind:0"), Level::ok);
  EXPECT_EQ(policy_level("bind=static:0"), Level::ok);
  EXPECT_EQ(policy_level("bind:1"), Level::warn);
  EXPECT_EQ(policy_level("interleave:0-1"), Level::warn);
}

TEST(DoctorNuma, accepts_interleaving_for_threads_on_both_nodes) {
  FakeMachine machine;
  machine.context.cpus = {0, 4};
  machine.write_two_nodes().write("/proc/self/numa_maps", "5555 interleave:0-1 heap\n");
  EXPECT_EQ(machine.find("numa", "memory policy").level, Level::ok);
}

TEST(DoctorNuma, does_not_know_the_policy_without_its_file) {
  FakeMachine machine;
  machine.write_two_nodes();
  EXPECT_EQ(machine.find("numa", "memory policy").level, Level::unknown);
}

}  // namespace
}  // namespace gauntlet::lab::doctor
