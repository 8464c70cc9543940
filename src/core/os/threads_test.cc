#include "core/os/threads.h"

#include <gtest/gtest.h>
#include <sched.h>

#include <algorithm>
#include <atomic>
#include <mutex>
#include <stdexcept>
#include <thread>
#include <utility>

#include "core/check.h"

namespace gauntlet {
namespace {

/// Puts this thread's CPUs back, which making a pool changes.
class AffinityGuard {
 public:
  AffinityGuard() { sched_getaffinity(0, sizeof(set_), &set_); }
  ~AffinityGuard() { sched_setaffinity(0, sizeof(set_), &set_); }

 private:
  cpu_set_t set_;
};

/// As many workers as asked for, on the CPUs there are.
std::vector<int> cpus_for(int workers) {
  const std::vector<int> allowed = allowed_cpus();
  std::vector<int> cpus;
  for (int i = 0; i < workers; ++i)
    cpus.push_back(allowed[static_cast<std::size_t>(i) % allowed.size()]);
  return cpus;
}

TEST(AllowedCpus, stay_the_same_when_the_thread_that_asks_is_pinned) {
  const AffinityGuard guard;
  const std::vector<int> before = allowed_cpus();
  ASSERT_FALSE(before.empty());
  EXPECT_TRUE(std::ranges::is_sorted(before));
  ASSERT_TRUE(pin_this_thread(before.back()));
  EXPECT_EQ(sched_getcpu(), before.back());
  EXPECT_EQ(allowed_cpus(), before);
}

TEST(PinThisThread, refuses_a_cpu_that_is_not_there) {
  const AffinityGuard guard;
  EXPECT_FALSE(pin_this_thread(CPU_SETSIZE - 1));
  EXPECT_FALSE(pin_this_thread(-1));
}

TEST(ThreadPool, calls_each_worker_once_per_run) {
  const AffinityGuard guard;
  ThreadPool pool(cpus_for(4));
  ASSERT_EQ(pool.size(), 4);
  std::vector<std::atomic<int>> calls(4);
  for (int round = 1; round <= 200; ++round) {
    pool.run([&](int worker) { ++calls[static_cast<std::size_t>(worker)]; });
    // run() has joined: every worker has finished this round and none has begun another.
    for (const auto& count : calls) ASSERT_EQ(count.load(), round);
  }
}

TEST(ThreadPool, runs_worker_zero_on_the_calling_thread_and_others_on_their_own) {
  const AffinityGuard guard;
  ThreadPool pool(cpus_for(3));
  std::vector<std::thread::id> ids(3);
  pool.run([&](int worker) { ids[static_cast<std::size_t>(worker)] = std::this_thread::get_id(); });
  EXPECT_EQ(ids[0], std::this_thread::get_id());
  EXPECT_NE(ids[1], ids[0]);
  EXPECT_NE(ids[2], ids[0]);
  EXPECT_NE(ids[1], ids[2]);
}

TEST(ThreadPool, pins_each_worker_to_its_cpu) {
  const AffinityGuard guard;
  const std::vector<int> cpus = cpus_for(3);
  ThreadPool pool(cpus);
  std::vector<cpu_set_t> allowed(3);
  pool.run([&](int worker) {
    sched_getaffinity(0, sizeof(cpu_set_t), &allowed[static_cast<std::size_t>(worker)]);
  });
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(CPU_COUNT(&allowed[i]), 1);
    EXPECT_TRUE(CPU_ISSET(cpus[i], &allowed[i]));
  }
}

TEST(ThreadPool, works_with_one_cpu_and_refuses_none) {
  const AffinityGuard guard;
  ThreadPool pool(cpus_for(1));
  int calls = 0;
  pool.run([&](int worker) {
    EXPECT_EQ(worker, 0);
    ++calls;
  });
  EXPECT_EQ(calls, 1);
  EXPECT_THROW(ThreadPool({}), Fault);
}

TEST(ThreadPool, waits_for_its_workers_when_the_callers_part_throws) {
  const AffinityGuard guard;
  ThreadPool pool(cpus_for(2));
  std::atomic<bool> finished = false;
  EXPECT_THROW(pool.run([&](int worker) {
    if (worker == 0) throw std::runtime_error("worker 0 gives up");
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    finished = true;
  }),
               std::runtime_error);
  EXPECT_TRUE(finished);
}

void expect_exact_cover(std::vector<std::pair<std::int64_t, std::int64_t>> ranges,
                        std::int64_t count) {
  std::ranges::sort(ranges);
  std::int64_t next = 0;
  for (const auto& [begin, end] : ranges) {
    EXPECT_EQ(begin, next);
    EXPECT_LE(begin, end);
    next = end;
  }
  EXPECT_EQ(next, count);
}

TEST(ThreadPool, counts_its_forks) {
  const AffinityGuard guard;
  ThreadPool pool(cpus_for(2));
  EXPECT_EQ(pool.forks(), 0u);
  pool.run([](int) {});
  pool.for_ranges(10, [](std::int64_t, std::int64_t) {});
  EXPECT_EQ(pool.forks(), 2u);
}

TEST(ThreadPool, splits_a_range_without_gap_or_overlap) {
  const AffinityGuard guard;
  ThreadPool pool(cpus_for(3));
  for (std::int64_t count : {0, 1, 2, 3, 7, 1000}) {
    std::mutex mutex;
    std::vector<std::pair<std::int64_t, std::int64_t>> ranges;
    pool.for_ranges(count, [&](std::int64_t begin, std::int64_t end) {
      const std::lock_guard lock(mutex);
      ranges.emplace_back(begin, end);
    });
    EXPECT_LE(ranges.size(), static_cast<std::size_t>(std::min<std::int64_t>(count, 3)));
    expect_exact_cover(ranges, count);
  }
}

TEST(ParallelFor, covers_everything_once) {
  for (std::int64_t count : {1, 5, 4096, 10001}) {
    std::mutex mutex;
    std::vector<std::pair<std::int64_t, std::int64_t>> ranges;
    parallel_for(
        count,
        [&](std::int64_t begin, std::int64_t end) {
          const std::lock_guard lock(mutex);
          ranges.emplace_back(begin, end);
        },
        /*grain=*/1);
    expect_exact_cover(ranges, count);
  }
}

TEST(ParallelFor, stays_on_this_thread_below_its_grain_and_calls_nothing_for_nothing) {
  int calls = 0;
  parallel_for(100, [&](std::int64_t begin, std::int64_t end) {
    EXPECT_EQ(begin, 0);
    EXPECT_EQ(end, 100);
    ++calls;
  });
  EXPECT_EQ(calls, 1);
  parallel_for(0, [&](std::int64_t, std::int64_t) { ++calls; });
  EXPECT_EQ(calls, 1);
}

TEST(ParallelFor, hands_on_what_a_thread_throws) {
  EXPECT_THROW(parallel_for(
                   100,
                   [](std::int64_t begin, std::int64_t) {
                     if (begin == 0) throw std::runtime_error("bad element");
                   },
                   /*grain=*/1),
               std::runtime_error);
}

TEST(ParallelFor, leaves_the_cpu_its_caller_is_pinned_to) {
  const AffinityGuard guard;
  const std::vector<int> all = allowed_cpus();
  if (all.size() < 2) GTEST_SKIP() << "needs two CPUs";
  pin_this_thread(all[0]);
  std::mutex mutex;
  std::size_t most = 0;
  parallel_for(
      100,
      [&](std::int64_t, std::int64_t) {
        const std::lock_guard lock(mutex);
        most = std::max(most, allowed_cpus().size());
      },
      /*grain=*/1);
  EXPECT_GT(most, 1u);
}

}  // namespace
}  // namespace gauntlet
