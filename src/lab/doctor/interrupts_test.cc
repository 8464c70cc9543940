#include <gtest/gtest.h>

#include "lab/doctor/fake_machine.h"

namespace gauntlet::lab::doctor {
namespace {

constexpr const char* kPiled =
    "           CPU0       CPU1       CPU2       CPU3\n"
    " 24:    9000000          0          0          0 PCI-MSIX-0000:00:02.0   1-edge      nvme0q1\n"
    " 25:     800000     100000     100000     100000 PCI-MSIX-0000:00:03.0   0-edge      eth0\n"
    "LOC:          1   99999999          1          1   Local timer interrupts\n"
    "ERR:          0\n";

TEST(DoctorInterrupts, are_well_when_spread) {
  FakeMachine machine;
  machine.write("/proc/uptime", "1000.00 3000.00\n")
      .write("/proc/interrupts",
             "           CPU0       CPU1       CPU2       CPU3\n"
             " 24:    1000000    1000000    1000000    1000000 PCI-MSI 1-edge nvme0q1\n");
  EXPECT_EQ(machine.find("interrupts", "spread").level, Level::ok);
  EXPECT_EQ(machine.find("interrupts", "irqbalance").level, Level::ok);
}

TEST(DoctorInterrupts, warn_when_one_cpu_takes_most_of_many) {
  FakeMachine machine;
  machine.write("/proc/uptime", "1000.00 3000.00\n").write("/proc/interrupts", kPiled);
  const Finding finding = machine.find("interrupts", "spread");
  EXPECT_EQ(finding.level, Level::warn);
  EXPECT_NE(finding.reason.find("CPU 0 took 97%"), std::string::npos) << finding.reason;
  EXPECT_NE(finding.reason.find("9800 a second"), std::string::npos) << finding.reason;
  EXPECT_NE(finding.reason.find("nvme0q1"), std::string::npos) << finding.reason;
  EXPECT_EQ(finding.fix, "echo 1-3 > /proc/irq/24/smp_affinity_list");
}

TEST(DoctorInterrupts, are_well_when_few_however_they_lie) {
  FakeMachine machine;
  machine.write("/proc/uptime", "1000000.00 3000.00\n").write("/proc/interrupts", kPiled);
  EXPECT_EQ(machine.find("interrupts", "spread").level, Level::ok);
}

TEST(DoctorInterrupts, are_unknown_without_the_file) {
  EXPECT_EQ(FakeMachine().find("interrupts", "spread").level, Level::unknown);
}

TEST(DoctorIrqbalance, is_missed_only_where_interrupts_pile_up) {
  FakeMachine machine;
  machine.write("/proc/uptime", "1000.00 3000.00\n")
      .write("/proc/interrupts", kPiled)
      .write("/proc/1/comm", "systemd\n");
  const Finding finding = machine.find("interrupts", "irqbalance");
  EXPECT_EQ(finding.level, Level::warn);
  EXPECT_EQ(finding.fix, "systemctl enable --now irqbalance");
  machine.write("/proc/612/comm", "irqbalance\n");
  EXPECT_EQ(machine.find("interrupts", "irqbalance").level, Level::ok);
}

TEST(DoctorIrqbalance, is_unknown_in_a_container_that_hides_the_host) {
  FakeMachine machine;
  machine.write("/proc/uptime", "1000.00 3000.00\n")
      .write("/proc/interrupts", kPiled)
      .write("/proc/1/comm", "bash\n");
  EXPECT_EQ(machine.find("interrupts", "irqbalance").level, Level::unknown);
}

}  // namespace
}  // namespace gauntlet::lab::doctor
