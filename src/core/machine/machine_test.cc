#include "core/machine/machine.h"

#include <gtest/gtest.h>

namespace gauntlet {
namespace {

std::string cpu_key(const std::string& model, int cores) {
  return MachineInfo{.cpu = {.model = model, .cores = cores}}.cpu_key();
}

TEST(MachineKey, holds_the_cpu_model_without_noise_and_the_cores) {
  EXPECT_EQ(cpu_key("AMD EPYC", 2), "amd-epyc-2c");
  EXPECT_EQ(cpu_key("AMD EPYC 9654 96-Core Processor", 96), "amd-epyc-9654-96c");
  EXPECT_EQ(cpu_key("Intel(R) Xeon(R) CPU @ 2.20GHz", 8), "intel-xeon-8c");
  EXPECT_EQ(cpu_key("Intel(R) Xeon(R) Platinum 8480C", 16), "intel-xeon-platinum-8480c-16c");
  EXPECT_EQ(cpu_key("", 1), "unknown-cpu-1c");
}

TEST(MachineKey, counts_gpus_of_a_kind) {
  MachineInfo machine;
  EXPECT_EQ(machine.gpu_key(), "");
  machine.gpus = {{.name = "NVIDIA H200"}};
  EXPECT_EQ(machine.gpu_key(), "nvidia-h200");
  machine.gpus.push_back({.name = "NVIDIA H200"});
  EXPECT_EQ(machine.gpu_key(), "2x-nvidia-h200");
}

TEST(MachineKey, does_not_depend_on_the_order_of_different_gpus) {
  MachineInfo machine;
  machine.gpus = {{.name = "NVIDIA H200"}, {.name = "NVIDIA A100"}};
  const std::string key = machine.gpu_key();
  std::swap(machine.gpus[0], machine.gpus[1]);
  EXPECT_EQ(machine.gpu_key(), key);
  EXPECT_EQ(key, "nvidia-a100-nvidia-h200");
}

TEST(ReadMachine, describes_this_machine) {
  const MachineInfo machine = read_machine();
  EXPECT_GE(machine.cpu.cores, 1);
  EXPECT_GT(machine.cpu.memory_bytes, 0);
  EXPECT_GT(machine.cpu.l1d_bytes, 0);
  EXPECT_GE(machine.cpu.last_level_bytes, machine.cpu.l1d_bytes);
  EXPECT_FALSE(machine.kernel.empty());
  EXPECT_EQ(machine.gpus.empty(), !machine.no_gpu_reason.empty());
}

TEST(ReadMachine, leaves_the_gpus_out_on_request) {
  const MachineInfo machine = read_machine(false);
  EXPECT_TRUE(machine.gpus.empty());
  EXPECT_EQ(machine.no_gpu_reason, "");
}

}  // namespace
}  // namespace gauntlet
