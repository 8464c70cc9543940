#include "lab/run/capability.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lab/targets/needs.h"

namespace gauntlet::lab::inline run {
namespace {

using testing::HasSubstr;
using testing::Not;

MachineInfo machine_with(int gpus, int major = 9, int minor = 0) {
  MachineInfo machine;
  machine.cpu.simd = {"avx2"};
  machine.no_gpu_reason = gpus == 0 ? "no CUDA device" : "";
  machine.gpus.assign(static_cast<std::size_t>(gpus),
                      {.name = "NVIDIA H200", .compute_major = major, .compute_minor = minor});
  return machine;
}

/// A target with two sides on each backend.
Target target_needing(std::vector<std::string> needs) {
  const std::vector<SideSource> sides = {{.name = "baseline", .role = SideRole::baseline},
                                         {.name = "optimized", .role = SideRole::optimized}};
  Target target{
      .source = {.chapter = "ch05", .name = "x", .cpu = sides, .ranks = sides, .cuda = sides}};
  target.pair.needs = std::move(needs);
  target.pair.cpu = target.pair.cuda = target.pair.ranks = BackendFacts{};
  return target;
}

std::string missing(const std::vector<std::string>& needs, const MachineInfo& machine,
                    const Probes& probes = {}) {
  return missing_capability(target_needing(needs), BackendKind::cuda, machine, {}, probes);
}

TEST(Capability, lets_run_what_needs_nothing_special) {
  for (const BackendKind backend : kBackends) {
    EXPECT_EQ(missing_capability(target_needing({}), backend, machine_with(1), {}), "")
        << name_of(backend);
  }
}

TEST(Capability, passes_on_why_there_is_no_gpu) {
  EXPECT_EQ(missing({}, machine_with(0)), "no CUDA device");
  EXPECT_EQ(missing_capability(target_needing({}), BackendKind::cpu, machine_with(0), {}), "");
  EXPECT_EQ(missing_capability(target_needing({}), BackendKind::ranks, machine_with(0), {}), "");
}

TEST(Capability, says_when_the_target_has_no_sides_for_the_backend) {
  Target target = target_needing({});
  target.source.cpu.clear();
  EXPECT_EQ(missing_capability(target, BackendKind::cpu, machine_with(1), {}), "has no cpu sides");
  target.source.cuda.clear();
  EXPECT_EQ(missing_capability(target, BackendKind::cuda, machine_with(1), {}),
            "has no cuda sides");
  target.source.ranks.clear();
  EXPECT_EQ(missing_capability(target, BackendKind::ranks, machine_with(1), {}),
            "has no ranks sides");
}

TEST(Capability, leaves_out_a_yardstick_alone_and_says_why) {
  Target target = target_needing({});
  target.source.cuda.push_back({.name = "cublas", .role = SideRole::yardstick});
  target.source.cuda.push_back({.name = "cudnn", .role = SideRole::yardstick});
  target.source.cuda.push_back(
      {.name = "newest", .role = SideRole::yardstick, .cuda_arch = "sm_100a"});
  target.pair.cuda->yardsticks = {{.name = "cublas", .needs = {"cublas"}},
                                  {.name = "cudnn", .needs = {"cublas", "cudnn"}}};
  const Probes probes = {
      {"cublas", [] { return Expected<void>{}; }},
      {"cudnn", []() -> Expected<void> { return Error{"libcudnn.so.9 was not found"}; }}};
  EXPECT_EQ(missing_capability(target, BackendKind::cuda, machine_with(1), {}, probes), "");
  const auto absent = absent_yardsticks(target, BackendKind::cuda, machine_with(1), {}, probes);
  ASSERT_EQ(absent.size(), 2u);
  EXPECT_EQ(absent[0].name, "cudnn");
  EXPECT_EQ(absent[0].reason, "needs cudnn: libcudnn.so.9 was not found");
  EXPECT_EQ(absent[1].name, "newest");
  EXPECT_EQ(absent[1].reason, "needs sm_100a, NVIDIA H200 is sm_90");
  EXPECT_TRUE(absent_yardsticks(target, BackendKind::cpu, machine_with(1), {}, probes).empty());
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
  Target target = target_needing({});
  target.source.cuda.back().cuda_arch = "sm_100a";
  EXPECT_EQ(missing_capability(target, BackendKind::cuda, machine_with(1), {}),
            "needs sm_100a, NVIDIA H200 is sm_90");
  EXPECT_EQ(missing_capability(target, BackendKind::cpu, machine_with(1), {}), "")
      << "the CPU sides need no GPU";
}

TEST(Capability, asks_each_backend_for_its_own_needs) {
  Target target = target_needing({});
  target.pair.cuda->needs = {"4 GPUs"};
  target.pair.cpu->needs = {"4 NUMA nodes"};
  EXPECT_EQ(missing_capability(target, BackendKind::cuda, machine_with(1), {}),
            "needs 4 GPUs, there is 1");
  EXPECT_THAT(missing_capability(target, BackendKind::cpu, machine_with(1), {}),
              HasSubstr("needs 4 NUMA nodes"));
  EXPECT_EQ(missing_capability(target, BackendKind::ranks, machine_with(1), {}), "");
}

TEST(Capability, counts_gpus_and_numa_nodes) {
  EXPECT_EQ(missing({"2 GPUs"}, machine_with(2)), "");
  EXPECT_EQ(missing({"2 GPUs"}, machine_with(1)), "needs 2 GPUs, there is 1");
  EXPECT_EQ(missing_capability(target_needing({"2 GPUs"}), BackendKind::ranks, machine_with(0), {}),
            "needs 2 GPUs, there is 0");
  MachineInfo machine = machine_with(1);
  EXPECT_THAT(missing({"2 NUMA nodes"}, machine), HasSubstr("needs 2 NUMA nodes, there is 1: "));
  machine.cpu.numa_nodes = 2;
  EXPECT_EQ(missing({"2 NUMA nodes"}, machine), "");
  EXPECT_NE(missing({"3 NUMA nodes"}, machine), "");
}

TEST(Capability, holds_the_number_of_ranks_against_those_of_the_run) {
  const auto on_ranks = [](const char* need, int count) {
    return missing_capability(target_needing({need}), BackendKind::ranks, machine_with(0),
                              {.count = count, .transport = kThreads});
  };
  EXPECT_EQ(on_ranks("2 ranks", 2), "");
  EXPECT_EQ(on_ranks("2 ranks", 8), "");
  EXPECT_EQ(on_ranks("4 ranks", 2), "needs 4 ranks, this run starts 2: use --ranks 4");
  EXPECT_EQ(missing({"64 ranks"}, machine_with(1)), "") << "a GPU's sides are no ranks";
}

TEST(Capability, takes_no_threads_for_processes) {
  const Probes probes = {{"mpi", []() -> Expected<void> { return {}; }}};
  const auto with = [&](const char* transport) {
    return missing_capability(target_needing({"mpi"}), BackendKind::ranks, machine_with(0),
                              {.count = 2, .transport = transport}, probes);
  };
  EXPECT_EQ(with(kMpi), "");
  EXPECT_EQ(with(kThreads), "needs mpi, and the ranks of this run are threads: use --launcher mpi");
}

TEST(Capability, names_the_first_of_several_that_is_missing) {
  EXPECT_EQ(missing({"sm_80", "4 GPUs", "sm_100a"}, machine_with(1)), "needs 4 GPUs, there is 1");
}

TEST(Capability, passes_on_what_a_probe_says) {
  Probes probes;
  for (const auto& known : probes_of({})) {
    const std::string& name = known.first;
    probes[name] = [name]() -> Expected<void> { return Error{"no " + name + ": buy one"}; };
  }
  ASSERT_EQ(probes.size(), 16u);
  for (const auto& [need, probe] : probes) {
    for (const BackendKind backend : kBackends) {
      EXPECT_EQ(missing_capability(target_needing({need}), backend, machine_with(1), {}, probes),
                "needs " + need + ": no " + need + ": buy one");
    }
  }
  for (auto& [need, probe] : probes) probe = []() -> Expected<void> { return {}; };
  for (const auto& [need, probe] : probes) EXPECT_EQ(missing({need}, machine_with(1), probes), "");
}

TEST(Capability, asks_only_for_what_the_target_needs) {
  int asked = 0;
  Probes probes = {{"mpi", [&asked]() -> Expected<void> {
                      ++asked;
                      return {};
                    }}};
  EXPECT_EQ(missing({}, machine_with(1), probes), "");
  EXPECT_EQ(asked, 0);
  EXPECT_EQ(missing({"mpi"}, machine_with(1), probes), "");
  EXPECT_EQ(asked, 1);
}

TEST(Capability, never_runs_what_it_cannot_check) {
  EXPECT_EQ(missing({"a quantum computer"}, machine_with(1), probes_of({})),
            "needs a quantum computer, which this lab cannot check");
}

TEST(Capability, has_a_probe_for_every_plain_need) {
  std::vector<std::string> probed;
  for (const auto& [need, probe] : probes_of({})) probed.push_back(need);
  EXPECT_EQ(probed, plain_needs());
}

TEST(ProbesOfThisMachine, give_a_reason_where_they_refuse) {
  for (const auto& [need, probe] : probes_of(read_machine(false))) {
    const auto probed = probe();
    if (probed) continue;
    EXPECT_GT(probed.error().message.size(), 20u) << need;
    EXPECT_THAT(probed.error().message, Not(HasSubstr("cannot check"))) << need;
  }
}

#if defined(__x86_64__)
TEST(Capability, skips_cpu_sides_on_a_cpu_without_avx2) {
  MachineInfo machine = machine_with(0);
  machine.cpu.simd = {};
  for (const BackendKind backend : {BackendKind::cpu, BackendKind::ranks}) {
    EXPECT_THAT(missing_capability(target_needing({}), backend, machine, {}), HasSubstr("no AVX2"));
  }
}
#endif

}  // namespace
}  // namespace gauntlet::lab::inline run
