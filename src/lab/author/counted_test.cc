#include "lab/author/counted.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <cmath>
#include <cstdint>
#include <ctime>
#include <functional>
#include <thread>
#include <vector>

#include "core/os/system_files.h"
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
  EXPECT_EQ(side.take_outcomes().values, (std::map<std::string, double>{{"steps", 3}}));
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
  EXPECT_EQ(side.take_outcomes().values.at("rate"), 1.5);
}

TEST(Counted, gives_an_outcome_of_each_of_several_totals_that_is_known) {
  double work = 0, time = 0;
  const Side side =
      counted({{.name = "work", .total = [&] { return work; }},
               {.name = "rate", .total = [&] { return work; }, .per = [&] { return time; }},
               {.name = "hidden", .total = [] { return std::nan(""); }}},
              [&] {
                work += 6;
                time += 2;
              });
  side.run();
  side.run();
  EXPECT_EQ(side.take_outcomes().values, (std::map<std::string, double>{{"work", 6}, {"rate", 3}}));
}

TEST(ReadCalls, and_what_they_copied_are_counted_by_the_kernel) {
  if (!SystemFiles().field("/proc/self/io", "syscr")) GTEST_SKIP() << "no /proc/self/io";
  const int zeros = ::open("/dev/zero", O_RDONLY | O_CLOEXEC);
  ASSERT_GE(zeros, 0);
  std::vector<char> out(1 << 16);
  const Side side = counted({read_calls(), copied_bytes()}, [&] {
    for (int i = 0; i < 100; ++i) EXPECT_EQ(::read(zeros, out.data(), out.size()), 1 << 16);
  });
  side.run();
  ::close(zeros);
  const auto outcomes = side.take_outcomes().values;
  // Asking costs a few reads itself.
  EXPECT_NEAR(outcomes.at("read_calls"), 100, 15);
  EXPECT_NEAR(outcomes.at("copied_bytes"), 100 << 16, 20'000);
}

TEST(Migrations, are_counted_when_a_thread_has_to_move) {
  const std::vector<int> cpus = allowed_cpus();
  if (cpus.size() < 2) GTEST_SKIP() << "one CPU";
  std::map<std::string, double> outcomes;
  std::thread([&] {
    const Side side = counted(migrations(), [&] {
      for (int i = 0; i < 10; ++i) pin_this_thread(cpus[i % 2]);
    });
    side.run();
    outcomes = side.take_outcomes().values;
  }).join();
  if (outcomes.empty()) GTEST_SKIP() << "this kernel does not show a thread's migrations";
  EXPECT_GE(outcomes.at("migrations"), 9);
}

TEST(WaitingMs, is_what_a_thread_slept) {
  const Side side =
      counted(waiting_ms(), [] { std::this_thread::sleep_for(std::chrono::milliseconds(20)); });
  side.run();
  EXPECT_GE(side.take_outcomes().values.at("waiting_ms"), 19);
}

TEST(ReadsInFlight, is_no_outcome_of_what_is_on_no_disk) {
  const int none = ::open("/proc/self/stat", O_RDONLY | O_CLOEXEC);
  ASSERT_GE(none, 0);
  const Side side = counted(reads_in_flight(none), [] {});
  side.run();
  ::close(none);
  EXPECT_TRUE(side.take_outcomes().values.empty());
}

TEST(Counted, says_nothing_before_the_first_run) {
  const Side side = counted({.name = "steps", .total = [] { return 1.0; }}, [] {});
  EXPECT_TRUE(side.take_outcomes().values.empty());
}

TEST(ForksOf, counts_the_forks_of_a_run) {
  ThreadPool pool(allowed_cpus());
  const Side side = counted(forks_of(&pool), [&] {
    for (int i = 0; i < 5; ++i) pool.run([](int) {});
  });
  pool.run([](int) {});
  side.run();
  side.run();
  EXPECT_EQ(side.take_outcomes().values.at("forks"), 5);
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

TEST(Counted, by_the_lab_is_what_the_lab_says_and_not_the_side) {
  ThreadPool pool(allowed_cpus());
  Side side = counted(forks_of(&pool), [&] { pool.run([](int) {}); });
  side.outcomes = [] { return std::map<std::string, double>{{"forks", 100}, {"own", 2}}; };
  side.run();
  const Outcomes outcomes = side.take_outcomes();
  EXPECT_EQ(outcomes.values, (std::map<std::string, double>{{"forks", 1}, {"own", 2}}));
  EXPECT_EQ(outcomes.stated, "forks");
}

TEST(Counted, of_a_pair_has_no_name_of_the_labs) {
  double total = 0;
  const Side side = counted({.name = "forks", .total = [&] { return total; }}, [&] { ++total; });
  side.run();
  const Outcomes outcomes = side.take_outcomes();
  EXPECT_TRUE(outcomes.values.empty());
  EXPECT_EQ(outcomes.stated, "forks");
}

TEST(BusyCpus, is_cpu_time_of_all_threads_per_time_that_goes_by) {
  constexpr std::int64_t kTotalNs = 60'000'000;
  double took_s = 0;
  const auto busy = [&](const std::function<void()>& work) {
    const Side side = counted(busy_cpus(), [&] {
      const auto begin = std::chrono::steady_clock::now();
      work();
      took_s = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    });
    side.run();
    return side.take_outcomes().values.at("busy_cpus");
  };
  const double in_turn = busy([] {
    std::jthread([] { spin(kTotalNs / 2); }).join();
    spin(kTotalNs / 2);
  });
  EXPECT_NEAR(in_turn, 0.06 / took_s, 0.1);
  EXPECT_LE(in_turn, 1.1);  // whatever else this machine does
  const double together = busy([] {
    std::jthread other([] { spin(kTotalNs); });
    spin(kTotalNs);
  });
  EXPECT_NEAR(together, 0.12 / took_s, 0.2);
  EXPECT_LE(busy([] { std::this_thread::sleep_for(std::chrono::milliseconds(60)); }), 0.2);
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
  EXPECT_NEAR(alone.take_outcomes().values.at("working_threads"), 1, 0.1);
  EXPECT_NEAR(shared.take_outcomes().values.at("working_threads"), 3, 0.3);
}

}  // namespace
}  // namespace gauntlet::lab::inline author
