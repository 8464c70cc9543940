#include <gtest/gtest.h>

#include "lab/doctor/fake_machine.h"

namespace gauntlet::lab::doctor {
namespace {

constexpr const char* kParanoid = "/proc/sys/kernel/perf_event_paranoid";

TEST(DoctorPerfPermission, warns_when_a_process_may_not_count_itself) {
  FakeMachine machine;
  EXPECT_EQ(machine.find("profiling", "perf permission").level, Level::unknown);
  machine.write(kParanoid, "2\n");
  EXPECT_EQ(machine.find("profiling", "perf permission").level, Level::ok);
  machine.write(kParanoid, "-1\n");
  EXPECT_EQ(machine.find("profiling", "perf permission").level, Level::ok);
  machine.write(kParanoid, "3\n");
  const Finding finding = machine.find("profiling", "perf permission");
  EXPECT_EQ(finding.level, Level::warn);
  EXPECT_EQ(finding.fix, "sysctl -w kernel.perf_event_paranoid=2");
}

TEST(DoctorPerfPermission, does_not_bind_a_process_with_the_right_to_count) {
  FakeMachine machine;
  machine.write(kParanoid, "4\n").write("/proc/self/status", "CapEff:\t0000004000000000\n");
  EXPECT_EQ(machine.find("profiling", "perf permission").level, Level::ok);
}

TEST(DoctorCounters, are_looked_for_among_the_event_sources) {
  FakeMachine machine;
  EXPECT_EQ(machine.find("profiling", "hardware counters").level, Level::unknown);
  machine.write("/sys/bus/event_source/devices/software/type", "1\n");
  machine.context.hypervisor = "kvm";
  const Finding finding = machine.find("profiling", "hardware counters");
  EXPECT_EQ(finding.level, Level::warn);
  EXPECT_NE(finding.fix.find("pmu=on"), std::string::npos);
  machine.write("/sys/bus/event_source/devices/cpu/type", "4\n");
  EXPECT_EQ(machine.find("profiling", "hardware counters").level, Level::ok);
}

TEST(DoctorCounters, of_hybrid_and_arm_cores_count_too) {
  for (const char* name : {"cpu_core", "armv8_pmuv3_0"}) {
    FakeMachine machine;
    machine.write(std::string("/sys/bus/event_source/devices/") + name + "/type", "8\n");
    EXPECT_EQ(machine.find("profiling", "hardware counters").level, Level::ok) << name;
  }
}

}  // namespace
}  // namespace gauntlet::lab::doctor
