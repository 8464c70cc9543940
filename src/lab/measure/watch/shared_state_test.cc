#include "lab/measure/watch/shared_state.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cfenv>
#include <functional>
#include <thread>

namespace gauntlet::lab::inline measure {
namespace {

using testing::HasSubstr;

/// What is said after a change, in a thread of its own that takes most of it along when it ends.
std::string said_after(const std::function<void()>& change) {
  std::string said;
  std::thread([&] {
    const SharedState before = SharedState::read({gettid()});
    change();
    said = SharedState::read({gettid()}).changed_since(before);
  }).join();
  return said;
}

TEST(SharedState, has_not_changed_where_nothing_was_done) {
  EXPECT_EQ(said_after([] {}), "");
  EXPECT_EQ(said_after([] { std::thread([] {}).join(); }), "");
  EXPECT_EQ(said_after([] {
              volatile float zero = 0, inexact = 1.0f / 3;
              inexact = inexact / zero;
            }),
            "")
      << "flags that arithmetic raises are no change";
}

TEST(SharedState, tells_a_thread_that_was_made_slower) {
  EXPECT_THAT(said_after([] { setpriority(PRIO_PROCESS, static_cast<id_t>(gettid()), 7); }),
              HasSubstr("nice value (7)"));
  EXPECT_THAT(said_after([] {
                const sched_param none{};
                sched_setscheduler(0, SCHED_BATCH, &none);
              }),
              HasSubstr("scheduling policy"));
}

TEST(SharedState, tells_a_thread_that_was_moved) {
  cpu_set_t cpus;
  sched_getaffinity(0, sizeof(cpus), &cpus);
  if (CPU_COUNT(&cpus) < 2) GTEST_SKIP() << "there is one CPU to be on";
  EXPECT_THAT(said_after([] {
                cpu_set_t fewer;
                sched_getaffinity(0, sizeof(fewer), &fewer);
                for (int cpu = 0;; ++cpu) {
                  if (!CPU_ISSET(cpu, &fewer)) continue;
                  CPU_CLR(cpu, &fewer);
                  break;
                }
                sched_setaffinity(0, sizeof(fewer), &fewer);
              }),
              HasSubstr("CPUs"));
}

TEST(SharedState, tells_another_rounding_mode) {
  EXPECT_THAT(said_after([] { std::fesetround(FE_UPWARD); }), HasSubstr("floating-point mode"));
}

TEST(SharedState, tells_a_limit_a_timer_and_a_handler_that_were_left) {
  rlimit core{};
  getrlimit(RLIMIT_CORE, &core);
  EXPECT_THAT(said_after([core] {
                rlimit other = core;
                other.rlim_cur = core.rlim_cur == 0 && core.rlim_max > 0 ? 1 : 0;
                if (core.rlim_max == 0) other.rlim_cur = 0;
                setrlimit(RLIMIT_CORE, &other);
              }),
              core.rlim_max == 0 ? testing::AnyOf("", HasSubstr("limit"))
                                 : testing::Matcher<std::string>(HasSubstr("resource limit")));
  setrlimit(RLIMIT_CORE, &core);
  const itimerval far{.it_interval = {}, .it_value = {.tv_sec = 3600, .tv_usec = 0}}, off{};
  EXPECT_THAT(said_after([&] { setitimer(ITIMER_PROF, &far, nullptr); }), HasSubstr("timer"));
  setitimer(ITIMER_PROF, &off, nullptr);
  EXPECT_THAT(said_after([] { signal(SIGUSR2, [](int) {}); }), HasSubstr("handler of signal"));
  signal(SIGUSR2, SIG_DFL);
}

}  // namespace
}  // namespace gauntlet::lab::inline measure
