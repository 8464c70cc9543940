#include <gtest/gtest.h>
#include <sys/mman.h>

#include <atomic>
#include <cerrno>
#include <thread>

#include "lab/profile/profiler_backends.h"

namespace gauntlet::lab::inline profile {
namespace {

constexpr int kPages = 300;

void touch_fresh_pages() {
  const std::size_t bytes = std::size_t{kPages} * 4096;
  void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(memory, MAP_FAILED);
  madvise(memory, bytes, MADV_NOHUGEPAGE);
  auto* words = static_cast<volatile char*>(memory);
  for (int page = 0; page < kPages; ++page) words[page * 4096] = 1;
  munmap(memory, bytes);
}

std::unique_ptr<Profiler> perf_or_skip(std::string& reason) {
  auto made = make_perf_profiler();
  if (made) return std::move(*made);
  reason = made.error().message;
  return nullptr;
}

#define NEED_PERF(profiler)                    \
  std::string missing;                         \
  const auto profiler = perf_or_skip(missing); \
  if (profiler == nullptr) GTEST_SKIP() << missing

TEST(PerfFailure, blames_the_virtual_machine_that_has_no_counters) {
  const std::string text = perf_failure("cycles", ENOENT, {.paranoid = 2, .virtual_machine = true});
  EXPECT_NE(text.find("this virtual machine exposes no hardware counters"), std::string::npos)
      << text;
  EXPECT_EQ(text.find("paranoid"), std::string::npos) << text;
}

TEST(PerfFailure, blames_perf_event_paranoid_and_says_what_to_set) {
  const std::string text = perf_failure("cycles", EACCES, {.paranoid = 3, .hardware_pmu = true});
  EXPECT_NE(text.find("perf_event_paranoid is 3"), std::string::npos) << text;
  EXPECT_NE(text.find("perf_event_paranoid=2"), std::string::npos) << text;
}

TEST(PerfFailure, asks_for_a_lower_setting_for_events_inside_the_kernel) {
  const std::string text =
      perf_failure("context-switches", EACCES, {.paranoid = 2, .hardware_pmu = true});
  EXPECT_NE(text.find("perf_event_paranoid=1"), std::string::npos) << text;
}

TEST(PerfFailure, blames_the_container_when_the_setting_would_allow_it) {
  const std::string text = perf_failure("cycles", EPERM, {.paranoid = 1, .hardware_pmu = true});
  EXPECT_NE(text.find("seccomp"), std::string::npos) << text;
}

TEST(PerfFailure, blames_the_cpu_that_lacks_one_event) {
  const std::string text =
      perf_failure("stalled-cycles-backend", ENOENT, {.paranoid = 1, .hardware_pmu = true});
  EXPECT_NE(text.find("this CPU has no counter for stalled-cycles-backend"), std::string::npos)
      << text;
}

TEST(PerfProfiler, counts_cycles_or_says_what_is_missing_here) {
  NEED_PERF(profiler);
  bool ran = false;
  const auto values = profiler->collect({"cycles", "instructions"}, [&] { ran = true; });
  const PerfFacts facts = read_perf_facts();
  if (values) {
    EXPECT_GT(values->at("instructions"), 0);
    return;
  }
  EXPECT_FALSE(ran);
  const std::string& text = values.error().message;
  EXPECT_TRUE(text.starts_with("perf events are not available: ")) << text;
  if (!facts.hardware_pmu && facts.virtual_machine) {
    EXPECT_NE(text.find("this virtual machine exposes no hardware counters"), std::string::npos)
        << text;
  }
}

// The thread sanitizer touches shadow pages of its own for each of ours.
#if defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define GAUNTLET_SHADOWED true
#endif
#endif
#ifndef GAUNTLET_SHADOWED
#define GAUNTLET_SHADOWED false
#endif
constexpr bool kShadowed = GAUNTLET_SHADOWED;

TEST(PerfProfiler, counts_page_faults_where_there_is_no_hardware_counter) {
  NEED_PERF(profiler);
  const auto values = profiler->collect({"page-faults"}, touch_fresh_pages);
  ASSERT_TRUE(values) << values.error().message;
  EXPECT_GE(values->at("page-faults"), kPages);
  if (!kShadowed) {
    EXPECT_LT(values->at("page-faults"), 2 * kPages);
  }
}

TEST(PerfProfiler, counts_a_thread_that_is_older_than_the_stretch) {
  NEED_PERF(profiler);
  std::atomic<int> step = 0;
  std::thread worker([&] {
    step.wait(0);
    touch_fresh_pages();
    step = 2;
    step.notify_all();
  });
  const auto values = profiler->collect({"page-faults"}, [&] {
    step = 1;
    step.notify_all();
    step.wait(1);
  });
  worker.join();
  ASSERT_TRUE(values) << values.error().message;
  EXPECT_GE(values->at("page-faults"), kPages);
}

TEST(PerfProfiler, counts_a_thread_that_starts_inside_the_stretch) {
  NEED_PERF(profiler);
  const auto values =
      profiler->collect({"page-faults"}, [] { std::thread(touch_fresh_pages).join(); });
  ASSERT_TRUE(values) << values.error().message;
  EXPECT_GE(values->at("page-faults"), kPages);
}

TEST(PerfProfiler, runs_before_pass_uncounted_once_per_pass) {
  NEED_PERF(profiler);
  int runs = 0;
  int preparations = 0;
  const auto values = profiler->collect(
      {"page-faults", "minor-faults", "major-faults", "task-clock", "page-faults"}, [&] { ++runs; },
      [&] {
        ++preparations;
        touch_fresh_pages();
      });
  ASSERT_TRUE(values) << values.error().message;
  EXPECT_EQ(runs, 1);
  EXPECT_EQ(preparations, 1);
  EXPECT_LT(values->at("page-faults"), kPages);
}

TEST(PerfProfiler, names_the_events_it_knows_when_asked_for_another) {
  NEED_PERF(profiler);
  const auto values = profiler->collect({"cylces"}, [] {});
  ASSERT_FALSE(values);
  EXPECT_EQ(values.error().kind, ErrorKind::wrong_use);
  EXPECT_NE(values.error().message.find("\"cylces\""), std::string::npos);
  EXPECT_NE(values.error().message.find("dTLB-load-misses"), std::string::npos);
}

TEST(PerfProfiler, knows_every_event_of_every_level) {
  NEED_PERF(profiler);
  for (const auto level :
       {ProfileLevel::minimal, ProfileLevel::roofline, ProfileLevel::deep_dive}) {
    for (const auto& name : profile_metrics(level, BackendKind::cpu)) {
      const auto values = profiler->collect({name}, [] {});
      EXPECT_TRUE(values || values.error().kind != ErrorKind::wrong_use) << name;
    }
  }
}

}  // namespace
}  // namespace gauntlet::lab::inline profile
