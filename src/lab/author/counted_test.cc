#include "lab/author/counted.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <ctime>
#include <thread>

#include "core/threads.h"

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

TEST(BusyCpus, tells_work_from_waiting) {
  using namespace std::chrono_literals;
  const auto spin = [] {
    const auto thread_ns = [] {
      timespec time{};
      clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
      return std::int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
    };
    const std::int64_t start = thread_ns();
    while (thread_ns() - start < 20'000'000) {
    }
  };
  const Side idle = counted(busy_cpus(), [] { std::this_thread::sleep_for(20ms); });
  const Side busy = counted(busy_cpus(), spin);
  idle.run();
  busy.run();
  // A loaded machine gives a busy thread less than a whole CPU, and never gives a sleeping one any.
  EXPECT_LT(idle.outcomes().at("busy_cpus"), 0.5);
  EXPECT_GT(busy.outcomes().at("busy_cpus"), 2 * idle.outcomes().at("busy_cpus"));
  EXPECT_LT(busy.outcomes().at("busy_cpus"), 1.5);
}

}  // namespace
}  // namespace gauntlet::lab::inline author
