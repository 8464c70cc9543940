#include "lab/author/counted.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <ctime>
#include <thread>

#include "core/os/threads.h"

namespace gauntlet::lab::inline author {
namespace {

TEST(Counted, divides_what_grew_by_the_runs) {
  double total = 100;  // what others did before is not the side's
  int runs = 0;
  const Side side = counted({.name = "steps", .total = [&] { return total; }}, [&] {
    total += 3;
    ++runs;
  });
  side.run();
  side.run();
  total += 50;  // nor what they do between its runs
  side.run();
  EXPECT_EQ(runs, 3);
  EXPECT_EQ(side.outcomes(), (std::map<std::string, double>{{"steps", 3}}));
}

TEST(Counted, divides_by_another_total_where_one_is_given) {
  double work = 0, time = 10;
  const Side side =
      counted({.name = "rate", .total = [&] { return work; }, .per = [&] { return time; }}, [&] {
        work += 6;
        time += 4;
      });
  side.run();
  time += 100;
  side.run();
  EXPECT_EQ(side.outcomes().at("rate"), 1.5);
}

TEST(Counted, says_nothing_before_the_first_run) {
  const Side side = counted({.name = "steps", .total = [] { return 1.0; }}, [] {});
  EXPECT_TRUE(side.outcomes().empty());
}

TEST(ForksOf, counts_the_forks_of_a_run) {
  ThreadPool pool(allowed_cpus());
  const Side side = counted(forks_of(&pool), [&] {
    for (int i = 0; i < 5; ++i) pool.run([](int) {});
  });
  pool.run([](int) {});
  side.run();
  side.run();
  EXPECT_EQ(side.outcomes().at("forks"), 5);
}

/// Uses this much CPU time of the calling thread.
void spin(std::int64_t ns) {
  const auto thread_ns = [] {
    timespec time{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return std::int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
  };
  const std::int64_t start = thread_ns();
  while (thread_ns() - start < ns) {
  }
}

TEST(WorkingThreads, tells_one_from_several) {
  constexpr std::int64_t kTotalNs = 60'000'000;
  const Side alone = counted(working_threads(), [] { spin(kTotalNs); });
  const Side shared = counted(working_threads(), [] {
    std::jthread first([] { spin(kTotalNs / 3); }), second([] { spin(kTotalNs / 3); });
    spin(kTotalNs / 3);
  });
  alone.run();
  shared.run();
  EXPECT_NEAR(alone.outcomes().at("working_threads"), 1, 0.1);
  EXPECT_NEAR(shared.outcomes().at("working_threads"), 3, 0.3);
}

}  // namespace
}  // namespace gauntlet::lab::inline author
