#include <gtest/gtest.h>

#include "lab/doctor/fake_machine.h"

namespace gauntlet::lab::doctor {
namespace {

void write_governors(FakeMachine& machine, const std::string& even, const std::string& odd) {
  for (int cpu = 0; cpu < 4; ++cpu) {
    machine.write("/sys/devices/system/cpu/cpu" + std::to_string(cpu) + "/cpufreq/scaling_governor",
                  cpu % 2 == 0 ? even : odd);
  }
}

TEST(DoctorGovernor, is_well_when_all_cpus_are_set_to_performance) {
  FakeMachine machine;
  write_governors(machine, "performance\n", "performance\n");
  EXPECT_EQ(machine.find("cpu", "governor").level, Level::ok);
}

TEST(DoctorGovernor, warns_of_the_cpus_that_are_not) {
  FakeMachine machine;
  write_governors(machine, "performance\n", "powersave\n");
  const Finding finding = machine.find("cpu", "governor");
  EXPECT_EQ(finding.level, Level::warn);
  EXPECT_NE(finding.reason.find("CPUs 1,3 use powersave"), std::string::npos) << finding.reason;
  EXPECT_EQ(finding.fix, "cpupower frequency-set -g performance");
}

TEST(DoctorGovernor, accepts_a_driver_that_prefers_performance_by_itself) {
  FakeMachine machine;
  machine.context.cpus = {0};
  machine.write("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor", "powersave\n")
      .write("/sys/devices/system/cpu/cpu0/cpufreq/energy_performance_preference", "performance\n");
  EXPECT_EQ(machine.find("cpu", "governor").level, Level::ok);
}

TEST(DoctorGovernor, is_unknown_where_the_host_decides) {
  FakeMachine machine;
  machine.context.hypervisor = "kvm";
  const Finding finding = machine.find("cpu", "governor");
  EXPECT_EQ(finding.level, Level::unknown);
  EXPECT_NE(finding.reason.find("host"), std::string::npos);
}

TEST(DoctorBoost, reads_both_kinds_of_switch) {
  const std::string boost = "/sys/devices/system/cpu/cpufreq/boost";
  const std::string no_turbo = "/sys/devices/system/cpu/intel_pstate/no_turbo";
  FakeMachine machine;
  EXPECT_EQ(machine.find("cpu", "boost").level, Level::unknown);
  machine.write(boost, "1\n");
  EXPECT_EQ(machine.find("cpu", "boost").level, Level::ok);
  machine.write(boost, "0\n");
  EXPECT_EQ(machine.find("cpu", "boost").fix, "echo 1 > " + boost);
  machine.write(no_turbo, "0\n");
  EXPECT_EQ(machine.find("cpu", "boost").level, Level::ok);
  machine.write(no_turbo, "1\n");
  EXPECT_EQ(machine.find("cpu", "boost").level, Level::warn);
  EXPECT_EQ(machine.find("cpu", "boost").fix, "echo 0 > " + no_turbo);
}

void write_siblings(FakeMachine& machine, const std::vector<std::string>& siblings) {
  for (std::size_t cpu = 0; cpu < siblings.size(); ++cpu) {
    machine.write(
        "/sys/devices/system/cpu/cpu" + std::to_string(cpu) + "/topology/thread_siblings_list",
        siblings[cpu]);
  }
}

TEST(DoctorSmt, is_well_when_each_cpu_is_a_core) {
  FakeMachine machine;
  write_siblings(machine, {"0,4\n", "1,5\n", "2,6\n", "3,7\n"});
  EXPECT_EQ(machine.find("cpu", "smt").level, Level::ok);
}

TEST(DoctorSmt, names_one_cpu_per_core_when_two_share_one) {
  FakeMachine machine;
  write_siblings(machine, {"0,2\n", "1,3\n", "0,2\n", "1,3\n"});
  const Finding finding = machine.find("cpu", "smt");
  EXPECT_EQ(finding.level, Level::warn);
  EXPECT_NE(finding.reason.find("CPUs 0 and 2 are one core"), std::string::npos) << finding.reason;
  EXPECT_EQ(finding.fix, "taskset -c 0-1 gauntlet ...");
}

TEST(DoctorPinning, is_well_where_nobody_is_set_apart_and_says_how_to) {
  FakeMachine machine;
  machine.write("/sys/devices/system/cpu/isolated", "\n")
      .write("/sys/devices/system/cpu/online", "0-3\n");
  const Finding finding = machine.find("cpu", "pinning");
  EXPECT_EQ(finding.level, Level::ok);
  EXPECT_NE(finding.reason.find("taskset"), std::string::npos) << finding.reason;
}

TEST(DoctorPinning, warns_when_set_apart_cpus_are_left_out_or_mixed_in) {
  FakeMachine machine;
  machine.write("/sys/devices/system/cpu/isolated", "4-7\n")
      .write("/sys/devices/system/cpu/online", "0-3\n");
  EXPECT_EQ(machine.find("cpu", "pinning").fix, "taskset -c 4-7 gauntlet ...");
  machine.context.cpus = {3, 4, 5};
  const Finding mixed = machine.find("cpu", "pinning");
  EXPECT_EQ(mixed.level, Level::warn);
  EXPECT_EQ(mixed.fix, "taskset -c 4-7 gauntlet ...");
  machine.context.cpus = {4, 5};
  EXPECT_EQ(machine.find("cpu", "pinning").level, Level::ok);
}

TEST(DoctorPinning, is_well_when_the_process_has_cpus_of_its_own) {
  FakeMachine machine;
  machine.write("/sys/devices/system/cpu/isolated", "\n")
      .write("/sys/devices/system/cpu/online", "0-7\n");
  EXPECT_EQ(machine.find("cpu", "pinning").reason, "this process stays on CPUs 0-3 of 0-7");
}

TEST(DoctorPinning, is_unknown_where_the_kernel_does_not_say) {
  EXPECT_EQ(FakeMachine().find("cpu", "pinning").level, Level::unknown);
}

TEST(DoctorSmt, is_unknown_without_topology) {
  EXPECT_EQ(FakeMachine().find("cpu", "smt").level, Level::unknown);
}

}  // namespace
}  // namespace gauntlet::lab::doctor
