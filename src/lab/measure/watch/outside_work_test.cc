#include "lab/measure/watch/outside_work.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gauntlet::lab::inline measure {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

constexpr double kSampleNs = 1e6;

Timing after(double ns) { return {.ns = kSampleNs, .after_ns = ns}; }
Timing before(double ns) { return {.ns = kSampleNs, .before_ns = ns}; }

/// What is found of a side after so many samples of one kind and others without anything.
std::optional<std::string> found(BackendKind backend, const Timing& timing, int strikes,
                                 int quiet = 0) {
  OutsideWork outside(backend, 2);
  for (int i = 0; i < quiet; ++i) outside.see(1, {.ns = kSampleNs});
  for (int i = 0; i < strikes; ++i) outside.see(1, timing);
  EXPECT_FALSE(outside.found(0)) << "nothing is known of the other side";
  return outside.found(1);
}

TEST(OutsideWork, finds_nothing_where_nothing_was) {
  for (const BackendKind backend : {BackendKind::cpu, BackendKind::cuda}) {
    EXPECT_FALSE(found(backend, {.ns = kSampleNs}, 100));
    EXPECT_FALSE(OutsideWork(backend, 1).found(0));
  }
}

TEST(OutsideWork, allows_a_gpu_its_latency_and_a_share_of_the_sample) {
  // 60 us and a hundredth of the sample.
  EXPECT_FALSE(found(BackendKind::cuda, after(69.9e3), 100));
  EXPECT_TRUE(found(BackendKind::cuda, after(70.1e3), 100));
  EXPECT_FALSE(found(BackendKind::cuda, before(69.9e3), 100));
  EXPECT_TRUE(found(BackendKind::cuda, before(70.1e3), 100));
}

TEST(OutsideWork, lets_a_thread_on_a_cpu_fall_asleep) {
  for (const BackendKind backend : {BackendKind::cpu, BackendKind::ranks}) {
    EXPECT_FALSE(found(backend, after(39e3), 100));
    EXPECT_TRUE(found(backend, after(41e3), 100));
    EXPECT_TRUE(found(backend, before(41e3), 100));
  }
}

TEST(OutsideWork, excuses_two_disturbances_and_no_third) {
  for (const BackendKind backend : {BackendKind::cpu, BackendKind::cuda}) {
    EXPECT_FALSE(found(backend, after(1e6), 2));
    EXPECT_TRUE(found(backend, after(1e6), 3));
    EXPECT_FALSE(found(backend, before(1e6), 2));
    EXPECT_TRUE(found(backend, before(1e6), 3));
  }
}

TEST(OutsideWork, excuses_what_happens_in_less_than_a_twentieth_of_the_samples) {
  EXPECT_FALSE(found(BackendKind::cuda, after(1e6), 4, 96));
  EXPECT_TRUE(found(BackendKind::cuda, after(1e6), 5, 95));
}

TEST(OutsideWork, counts_before_and_after_apart) {
  OutsideWork outside(BackendKind::cpu, 1);
  for (int i = 0; i < 2; ++i) {
    outside.see(0, before(1e6));
    outside.see(0, after(1e6));
  }
  EXPECT_FALSE(outside.found(0));
}

TEST(OutsideWork, needs_one_sample_to_see_a_process_that_was_left) {
  EXPECT_THAT(*found(BackendKind::cpu, {.ns = kSampleNs, .left_process = true}, 1, 1000),
              StartsWith("left a process of its own running"));
}

TEST(OutsideWork, tells_the_worst_sample_and_how_many_there_were) {
  OutsideWork gpu(BackendKind::cuda, 1);
  for (const double ns : {2e6, 4e6, 3e6}) gpu.see(0, after(ns));
  gpu.see(0, {.ns = kSampleNs});
  EXPECT_EQ(*gpu.found(0),
            "does work outside of its stream: events saw 1.000 ms, and the device was busy for "
            "4.000 ms more (3 of 4 samples)");
  OutsideWork early(BackendKind::cuda, 1);
  for (int i = 0; i < 3; ++i) early.see(0, before(2e6));
  EXPECT_THAT(*early.found(0), HasSubstr("the device was busy for 2.000 ms"));
  OutsideWork cpu(BackendKind::cpu, 1);
  for (int i = 0; i < 3; ++i) cpu.see(0, after(90e3));
  EXPECT_THAT(*cpu.found(0), HasSubstr("the lab does not know used 90 us of CPU time"));
}

TEST(OutsideWork, adds_to_a_gpus_sample_what_its_events_did_not_see) {
  const OutsideWork gpu(BackendKind::cuda, 2);
  EXPECT_EQ(gpu.with_uncounted(1, after(280e3)), kSampleNs + 280e3);
  EXPECT_EQ(gpu.with_uncounted(1, before(20e3)), kSampleNs + 20e3) << "however little it is";
  EXPECT_EQ(gpu.with_uncounted(0, after(280e3)), kSampleNs) << "it may be the other side's work";
}

TEST(OutsideWork, finds_threads_that_can_launch_on_a_gpu) {
  EXPECT_FALSE(found(BackendKind::cuda, {.ns = kSampleNs, .host_ns = 9e3}, 100));
  EXPECT_THAT(*found(BackendKind::cuda, {.ns = kSampleNs, .host_ns = 11e3}, 3),
              HasSubstr("they used 11 us of CPU time"));
  OutsideWork declared(BackendKind::cuda, 1);
  for (int i = 0; i < 10; ++i) declared.see(0, {.host_ns = 1e6}, Helpers::threads);
  EXPECT_FALSE(declared.found(0));
}

TEST(OutsideWork, adds_to_a_cpus_sample_what_threads_used_but_never_to_the_baselines) {
  const OutsideWork cpu(BackendKind::cpu, 2);
  EXPECT_EQ(cpu.with_uncounted(1, after(1)), kSampleNs + 1) << "however little it is";
  EXPECT_EQ(cpu.with_uncounted(1, before(20e3)), kSampleNs + 20e3);
  EXPECT_EQ(cpu.with_uncounted(0, after(20e3)), kSampleNs) << "it may be the other side's thread";
}

TEST(OutsideWork, adds_what_declared_helpers_used_to_either_side_and_does_not_refuse_it) {
  OutsideWork outside(BackendKind::cpu, 2);
  for (const std::size_t side : {0u, 1u}) {
    EXPECT_EQ(outside.with_uncounted(side, after(5e6), Helpers::threads), kSampleNs + 5e6);
    for (int i = 0; i < 10; ++i) outside.see(side, after(5e6), Helpers::threads);
    EXPECT_FALSE(outside.found(side));
  }
}

TEST(OutsideWork, refuses_helpers_that_do_not_come_to_rest_or_work_before_a_call) {
  const auto told = [](const Timing& timing) {
    OutsideWork outside(BackendKind::cpu, 1);
    for (int i = 0; i < 3; ++i) outside.see(0, timing, Helpers::threads_and_processes);
    return outside.found(0).value_or("nothing");
  };
  EXPECT_THAT(told({.ns = kSampleNs, .after_ns = 20e6, .restless = true}),
              HasSubstr("without coming to rest (3 of 3 samples)"));
  EXPECT_THAT(told(before(41e3)), HasSubstr("does work before its clock starts"));
}

TEST(OutsideWork, allows_processes_only_where_they_were_declared) {
  for (const auto& [helpers, allowed] :
       {std::pair{Helpers::none, false}, std::pair{Helpers::threads, false},
        std::pair{Helpers::processes, true}, std::pair{Helpers::threads_and_processes, true}}) {
    OutsideWork outside(BackendKind::cpu, 1);
    outside.see(0, {.ns = kSampleNs, .left_process = true}, helpers);
    EXPECT_EQ(outside.found(0).has_value(), !allowed);
  }
}

}  // namespace
}  // namespace gauntlet::lab::inline measure
