#include <gtest/gtest.h>

#include <algorithm>

#include "lab/doctor/fake_machine.h"

namespace gauntlet::lab::doctor {
namespace {

void write_pci_gpu(FakeMachine& machine, const std::string& address) {
  machine.write("/sys/bus/pci/devices/" + address + "/vendor", "0x10de\n")
      .write("/sys/bus/pci/devices/" + address + "/class", "0x030200\n");
}

struct GpuMachine : FakeMachine {
  GpuMachine() {
    write_pci_gpu(*this, "0000:18:00.0");
    context.cuda = {.gpus = {{.name = "NVIDIA H200"}}, .driver = "13.0", .runtime = "13.0"};
    context.nvml = {
        .driver_version = "580.65.06",
        .gpus = {{.persistence_mode = true,
                  .mig_enabled = false,
                  .state = GpuState{.sm_clock_mhz = 345, .power_w = 75, .temperature_c = 31},
                  .max_sm_clock_mhz = 1980,
                  .power_limit_w = 700,
                  .foreign_processes = std::vector<GpuProcess>{}}}};
  }
  GpuFacts& gpu() { return context.nvml.gpus[0]; }
};

std::size_t gpu_lines(const FakeMachine& machine) {
  const auto findings = run_doctor(machine.context);
  return static_cast<std::size_t>(std::count_if(findings.begin(), findings.end(),
                                                [](const Finding& f) { return f.area == "gpu"; }));
}

TEST(DoctorGpu, is_one_line_without_a_gpu) {
  FakeMachine machine;
  machine.context.cuda = {.reason = "no CUDA device (no NVIDIA driver is loaded)",
                          .runtime = "13.0"};
  EXPECT_EQ(gpu_lines(machine), 1u);
  const Finding finding = machine.find("gpu", "device");
  EXPECT_EQ(finding.level, Level::ok);
  EXPECT_EQ(finding.reason, "no GPU: no CUDA device (no NVIDIA driver is loaded)");
}

TEST(DoctorGpu, fails_when_a_gpu_is_there_that_cuda_cannot_use) {
  FakeMachine machine;
  write_pci_gpu(machine, "0000:18:00.0");
  machine.context.cuda = {.reason = "no CUDA device (...)", .runtime = "13.0"};
  EXPECT_EQ(machine.find("gpu", "device").level, Level::fail);
  EXPECT_NE(machine.find("gpu", "device").fix.find("modprobe nvidia"), std::string::npos);
  machine.context.cuda.driver = "12.8";
  EXPECT_EQ(machine.find("gpu", "device").fix, "install a driver for CUDA 13.0 or newer");
  machine.context.cuda.driver = "13.0";
  EXPECT_NE(machine.find("gpu", "device").fix.find("CUDA_VISIBLE_DEVICES"), std::string::npos);
  EXPECT_EQ(gpu_lines(machine), 1u);
}

TEST(DoctorGpu, asks_for_a_build_with_cuda_where_there_is_a_gpu) {
  FakeMachine machine;
  machine.context.cuda = {.reason = "built without CUDA"};
  EXPECT_EQ(machine.find("gpu", "device").level, Level::ok);
  write_pci_gpu(machine, "0000:18:00.0");
  EXPECT_EQ(machine.find("gpu", "device").level, Level::warn);
}

TEST(DoctorGpu, ignores_nvidia_devices_that_are_no_gpus) {
  FakeMachine machine;
  machine.context.cuda = {.reason = "no CUDA device", .runtime = "13.0"};
  machine.write("/sys/bus/pci/devices/0000:05:00.0/vendor", "0x10de\n")
      .write("/sys/bus/pci/devices/0000:05:00.0/class", "0x068000\n");
  EXPECT_EQ(machine.find("gpu", "device").level, Level::ok);
}

TEST(DoctorGpu, is_well_when_awake_alone_and_unhindered) {
  GpuMachine machine;
  EXPECT_EQ(machine.find("gpu", "device").reason, "NVIDIA H200");
  for (const char* name : {"driver", "persistence mode", "mig", "clocks", "other processes"}) {
    EXPECT_EQ(machine.find("gpu", name).level, Level::ok) << name;
    EXPECT_EQ(machine.find("gpu", name).fix, "") << name;
  }
  EXPECT_EQ(machine.find("gpu", "clocks").reason,
            "GPU 0: 345 MHz now, 1980 at most, 75 W of 700, 31 C");
}

TEST(DoctorGpu, warns_of_a_driver_older_than_the_runtime) {
  GpuMachine machine;
  machine.context.cuda.runtime = "13.2";
  EXPECT_EQ(machine.find("gpu", "driver").level, Level::warn);
  machine.context.cuda.driver = "13.10";
  EXPECT_EQ(machine.find("gpu", "driver").level, Level::ok);
}

TEST(DoctorGpu, reads_the_drivers_version_without_nvml) {
  GpuMachine machine;
  machine.context.nvml = {.missing = "libnvidia-ml.so.1 not found"};
  machine.write("/proc/driver/nvidia/version",
                "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.65.06  Release "
                "Build\nGCC version: 12.2.0\n");
  EXPECT_TRUE(machine.find("gpu", "driver").reason.starts_with("580.65.06 supports CUDA 13.0"));
  EXPECT_EQ(machine.find("gpu", "nvml").level, Level::warn);
}

TEST(DoctorGpu, warns_of_persistence_mode_off_and_mig_on) {
  GpuMachine machine;
  machine.gpu().persistence_mode = false;
  machine.gpu().mig_enabled = true;
  EXPECT_EQ(machine.find("gpu", "persistence mode").level, Level::warn);
  EXPECT_EQ(machine.find("gpu", "persistence mode").fix, "nvidia-smi -i 0 -pm 1");
  EXPECT_EQ(machine.find("gpu", "mig").level, Level::warn);
  EXPECT_EQ(machine.find("gpu", "mig").fix, "nvidia-smi -i 0 -mig 0");
}

TEST(DoctorGpu, names_each_gpu_that_differs) {
  GpuMachine machine;
  machine.context.nvml.gpus.push_back({.persistence_mode = false});
  machine.context.nvml.gpus.push_back({.persistence_mode = false});
  const Finding finding = machine.find("gpu", "persistence mode");
  EXPECT_EQ(finding.fix, "nvidia-smi -i 1 -pm 1 && nvidia-smi -i 2 -pm 1");
  EXPECT_EQ(finding.reason.find("GPU 0"), std::string::npos);
}

TEST(DoctorGpu, does_not_guess_what_the_driver_does_not_answer) {
  GpuMachine machine;
  machine.gpu() = {};
  for (const char* name : {"persistence mode", "mig", "clocks", "other processes"}) {
    EXPECT_EQ(machine.find("gpu", name).level, Level::unknown) << name;
  }
}

TEST(DoctorGpu, warns_of_a_clock_held_down_and_says_by_what) {
  GpuMachine machine;
  machine.gpu().state->throttle_reasons = {"hw thermal"};
  EXPECT_EQ(machine.find("gpu", "clocks").level, Level::warn);
  EXPECT_NE(machine.find("gpu", "clocks").reason.find("hw thermal"), std::string::npos);
  EXPECT_NE(machine.find("gpu", "clocks").fix.find("TEMPERATURE"), std::string::npos);
  machine.gpu().state->throttle_reasons = {"power cap"};
  EXPECT_NE(machine.find("gpu", "clocks").fix.find("-pl"), std::string::npos);
}

TEST(DoctorGpu, warns_of_other_processes) {
  GpuMachine machine;
  machine.gpu().foreign_processes = {{.pid = 12, .memory_bytes = std::int64_t{3} << 30},
                                     {.pid = 34, .memory_bytes = 1 << 20}};
  const Finding finding = machine.find("gpu", "other processes");
  EXPECT_EQ(finding.level, Level::warn);
  EXPECT_EQ(finding.reason, "GPU 0: process 12 holds 3 GiB, process 34 holds 1 MiB");
  EXPECT_EQ(finding.fix, "kill 12 34");
}

TEST(DoctorGpuTopology, warns_of_a_narrow_link) {
  GpuMachine machine;
  EXPECT_EQ(machine.find("gpu", "pcie link").level, Level::unknown);
  const std::string device = "/sys/bus/pci/devices/0000:18:00.0";
  machine.write(device + "/current_link_width", "16\n")
      .write(device + "/max_link_width", "16\n")
      .write(device + "/current_link_speed", "32.0 GT/s PCIe\n");
  EXPECT_EQ(machine.find("gpu", "pcie link").level, Level::ok);
  machine.write(device + "/current_link_width", "8\n");
  const Finding finding = machine.find("gpu", "pcie link");
  EXPECT_EQ(finding.level, Level::warn);
  EXPECT_NE(finding.reason.find("x8 of x16"), std::string::npos) << finding.reason;
  machine.write(device + "/max_link_width", "63\n");
  EXPECT_EQ(machine.find("gpu", "pcie link").level, Level::unknown);
}

TEST(DoctorGpuTopology, warns_of_a_gpu_on_the_other_socket) {
  GpuMachine machine;
  EXPECT_EQ(machine.find("gpu", "numa node").level, Level::ok);
  machine.write_two_nodes();
  EXPECT_EQ(machine.find("gpu", "numa node").level, Level::unknown);
  machine.write("/sys/bus/pci/devices/0000:18:00.0/numa_node", "0\n");
  EXPECT_EQ(machine.find("gpu", "numa node").level, Level::ok);
  machine.write("/sys/bus/pci/devices/0000:18:00.0/numa_node", "1\n");
  const Finding finding = machine.find("gpu", "numa node");
  EXPECT_EQ(finding.level, Level::warn);
  EXPECT_EQ(finding.fix, "numactl --cpunodebind=1 --membind=1 gauntlet ...");
}

TEST(DoctorGpuTopology, warns_when_the_process_may_wander_from_the_gpu) {
  GpuMachine machine;
  machine.write_two_nodes().write("/sys/bus/pci/devices/0000:18:00.0/numa_node", "1\n");
  machine.context.cpus = {2, 3, 4, 5};
  const Finding finding = machine.find("gpu", "numa node");
  EXPECT_EQ(finding.level, Level::warn);
  EXPECT_NE(finding.reason.find("may run on nodes 0-1"), std::string::npos) << finding.reason;
  EXPECT_EQ(finding.fix, "numactl --cpunodebind=1 --membind=1 gauntlet ...");
  machine.context.cpus = {4, 5};
  EXPECT_EQ(machine.find("gpu", "numa node").level, Level::ok);
}

TEST(DoctorGpuTopology, is_well_on_all_nodes_that_have_gpus) {
  GpuMachine machine;
  write_pci_gpu(machine, "0000:98:00.0");
  machine.write_two_nodes()
      .write("/sys/bus/pci/devices/0000:18:00.0/numa_node", "0\n")
      .write("/sys/bus/pci/devices/0000:98:00.0/numa_node", "1\n");
  machine.context.cpus = {2, 3, 4, 5};
  const Finding finding = machine.find("gpu", "numa node");
  EXPECT_EQ(finding.level, Level::ok);
  EXPECT_EQ(finding.reason, "0000:18:00.0 on node 0, 0000:98:00.0 on node 1");
}

TEST(DoctorGpuTools, know_who_may_read_counters) {
  GpuMachine machine;
  EXPECT_EQ(machine.find("gpu", "profiling permission").level, Level::unknown);
  machine.write("/proc/driver/nvidia/params", "Mobile: 0\nRmProfilingAdminOnly: 0\n");
  EXPECT_EQ(machine.find("gpu", "profiling permission").level, Level::ok);
  machine.write("/proc/driver/nvidia/params", "RmProfilingAdminOnly: 1\n");
  const Finding finding = machine.find("gpu", "profiling permission");
  EXPECT_EQ(finding.level, Level::warn);
  EXPECT_NE(finding.fix.find("NVreg_RestrictProfilingToAdminUsers=0"), std::string::npos);
  machine.write("/proc/self/status", "CapEff:\t000001ffffffffff\n");
  EXPECT_EQ(machine.find("gpu", "profiling permission").level, Level::ok);
}

TEST(DoctorGpuTools, look_for_the_libraries_opened_at_run_time) {
  GpuMachine machine;
  machine.context.libraries = {
      {.name = "libcublas.so.13", .path = "/usr/local/cuda/lib64/libcublas.so.13"},
      {.name = "libcupti.so.13", .missing = "libcupti.so.13 not found: looked in ..."},
      {.name = "libnccl.so.2", .missing = "libnccl.so.2 not found: looked in ..."}};
  EXPECT_EQ(machine.find("gpu", "libcublas.so.13").level, Level::ok);
  EXPECT_EQ(machine.find("gpu", "libcupti.so.13").level, Level::warn);
  EXPECT_NE(machine.find("gpu", "libcupti.so.13").fix.find("cuda-cupti-13-0"), std::string::npos);
  EXPECT_EQ(machine.find("gpu", "libnccl.so.2").level, Level::ok);
  machine.context.cuda.gpus.push_back({.name = "NVIDIA H200"});
  EXPECT_EQ(machine.find("gpu", "libnccl.so.2").level, Level::warn);
}

}  // namespace
}  // namespace gauntlet::lab::doctor
