#include <gtest/gtest.h>

#include "lab/doctor/fake_machine.h"

namespace gauntlet::lab::doctor {
namespace {

const std::string kClock = "/sys/devices/system/clocksource/clocksource0";

TEST(DoctorClocksource, accepts_those_read_without_the_kernel) {
  FakeMachine machine;
  EXPECT_EQ(machine.find("timing", "clocksource").level, Level::unknown);
  for (const char* name : {"tsc\n", "kvm-clock\n", "arch_sys_counter\n"}) {
    machine.write(kClock + "/current_clocksource", name);
    EXPECT_EQ(machine.find("timing", "clocksource").level, Level::ok) << name;
  }
}

TEST(DoctorClocksource, warns_of_slow_ones_and_knows_whether_tsc_is_there) {
  FakeMachine machine;
  machine.write(kClock + "/current_clocksource", "hpet\n")
      .write(kClock + "/available_clocksource", "hpet acpi_pm\n");
  EXPECT_EQ(machine.find("timing", "clocksource").level, Level::warn);
  EXPECT_TRUE(machine.find("timing", "clocksource").fix.starts_with("boot with"));
  machine.write(kClock + "/available_clocksource", "tsc hpet acpi_pm\n");
  EXPECT_EQ(machine.find("timing", "clocksource").fix,
            "echo tsc > " + kClock + "/current_clocksource");
}

TEST(DoctorLoad, warns_when_others_are_busy) {
  FakeMachine machine;
  EXPECT_EQ(machine.find("timing", "load").level, Level::unknown);
  machine.write("/proc/loadavg", "0.10 2.00 3.00 1/95 8436\n");
  EXPECT_EQ(machine.find("timing", "load").level, Level::ok);
  machine.write("/proc/loadavg", "2.50 0.00 0.00 3/95 8436\n");
  EXPECT_EQ(machine.find("timing", "load").level, Level::warn);
}

TEST(DoctorLoad, is_measured_against_the_whole_machine) {
  FakeMachine machine;
  machine.write("/proc/loadavg", "2.50 0.00 0.00 3/95 8436\n")
      .write("/sys/devices/system/cpu/online", "0-63\n");
  EXPECT_EQ(machine.find("timing", "load").level, Level::ok);
}

TEST(DoctorStolenTime, warns_when_the_host_is_shared) {
  FakeMachine machine;
  machine.write("/proc/stat", "cpu  100 0 0 800 0 0 0 100 0 0\ncpu0 1 2 3\n");
  EXPECT_EQ(machine.find("timing", "stolen time").level, Level::ok);
  machine.context.hypervisor = "kvm";
  const Finding finding = machine.find("timing", "stolen time");
  EXPECT_EQ(finding.level, Level::warn);
  EXPECT_TRUE(finding.reason.starts_with("10% since boot")) << finding.reason;
  machine.write("/proc/stat", "cpu  100 0 0 899 0 0 0 1 0 0\n");
  EXPECT_EQ(machine.find("timing", "stolen time").level, Level::ok);
  machine.write("/proc/stat", "");
  EXPECT_EQ(machine.find("timing", "stolen time").level, Level::unknown);
}

}  // namespace
}  // namespace gauntlet::lab::doctor
