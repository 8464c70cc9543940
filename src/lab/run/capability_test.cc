#include "lab/run/capability.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lab/measure/fake_backend.h"

namespace gauntlet::lab::inline run {
namespace {

MachineInfo machine_with(int gpus, int major = 9, int minor = 0) {
  MachineInfo machine;
  machine.cpu.simd = {"avx2"};
  machine.no_gpu_reason = gpus == 0 ? "no CUDA device" : "";
  machine.gpus.assign(static_cast<std::size_t>(gpus),
                      {.name = "NVIDIA H200", .compute_major = major, .compute_minor = minor});
  return machine;
}

std::string missing(const std::vector<std::string>& needs, const MachineInfo& machine) {
  Target target = twice_target();
  target.pair.needs = needs;
  return missing_capability(target, BackendKind::cuda, machine);
}

TEST(Capability, lets_run_what_needs_nothing_special) {
  EXPECT_EQ(missing({}, machine_with(1)), "");
  EXPECT_EQ(missing_capability(twice_target(), BackendKind::cpu, machine_with(0)), "");
}

TEST(Capability, passes_on_why_there_is_no_gpu) {
  EXPECT_EQ(missing({}, machine_with(0)), "no CUDA device");
}

TEST(Capability, says_when_the_pair_has_no_sides_for_the_backend) {
  Target target = twice_target();
  target.source.cpu.clear();
  EXPECT_EQ(missing_capability(target, BackendKind::cpu, machine_with(1)), "has no cpu sides");
  target.source.cuda.clear();
  EXPECT_EQ(missing_capability(target, BackendKind::cuda, machine_with(1)), "has no cuda sides");
}

TEST(Capability, takes_a_plain_architecture_for_a_minimum) {
  EXPECT_EQ(missing({"sm_80"}, machine_with(1, 9, 0)), "");
  EXPECT_EQ(missing({"sm_90"}, machine_with(1, 9, 0)), "");
  EXPECT_EQ(missing({"sm_90"}, machine_with(1, 10, 0)), "");
  EXPECT_EQ(missing({"sm_90"}, machine_with(1, 8, 6)), "needs sm_90, NVIDIA H200 is sm_86");
}

TEST(Capability, takes_an_architecture_with_an_a_for_that_one_alone) {
  EXPECT_EQ(missing({"sm_90a"}, machine_with(1, 9, 0)), "");
  EXPECT_EQ(missing({"sm_90a"}, machine_with(1, 10, 0)), "needs sm_90a, NVIDIA H200 is sm_100");
  EXPECT_EQ(missing({"sm_100a"}, machine_with(1, 9, 0)), "needs sm_100a, NVIDIA H200 is sm_90");
}

TEST(Capability, adds_the_architecture_of_the_sources) {
  Target target = twice_target();
  target.source.cuda[1].cuda_arch = "sm_100a";
  EXPECT_EQ(missing_capability(target, BackendKind::cuda, machine_with(1)),
            "needs sm_100a, NVIDIA H200 is sm_90");
  EXPECT_EQ(missing_capability(target, BackendKind::cpu, machine_with(1)), "")
      << "the CPU sides need no GPU";
}

TEST(Capability, counts_gpus) {
  EXPECT_EQ(missing({"2 GPUs"}, machine_with(2)), "");
  EXPECT_EQ(missing({"2 GPUs"}, machine_with(1)), "needs 2 GPUs, there is 1");
}

TEST(Capability, names_the_first_of_several_that_is_missing) {
  EXPECT_EQ(missing({"sm_80", "4 GPUs", "sm_100a"}, machine_with(1)), "needs 4 GPUs, there is 1");
}

TEST(Capability, never_runs_what_it_cannot_check) {
  EXPECT_EQ(missing({"a quantum computer"}, machine_with(1)),
            "needs a quantum computer, which this lab cannot check");
}

TEST(Capability, knows_which_needs_it_can_check) {
  for (const char* need : {"cublas", "sm_80", "sm_90a", "8 GPUs"})
    EXPECT_TRUE(known_capability(need));
  for (const char* need : {"", "sm_", "sm90", "sm_90b", "GPUs", "2 gpus", "cudnn"}) {
    EXPECT_FALSE(known_capability(need)) << need;
  }
}

#if defined(__x86_64__)
TEST(Capability, skips_cpu_sides_on_a_cpu_without_avx2) {
  MachineInfo machine = machine_with(0);
  machine.cpu.simd = {};
  EXPECT_THAT(missing_capability(twice_target(), BackendKind::cpu, machine),
              testing::HasSubstr("no AVX2"));
}
#endif

}  // namespace
}  // namespace gauntlet::lab::inline run
