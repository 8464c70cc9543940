#include "lab/measure/watch/known_threads.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <optional>
#include <thread>
#include <vector>

#include "lab/measure/watch/unknown_work.h"

namespace gauntlet::lab::inline measure {
namespace {

using namespace std::chrono_literals;

/// Uses so much CPU time of the calling thread.
void use_cpu(double ns) {
  const double begin = read_clock_ns(CLOCK_THREAD_CPUTIME_ID);
  while (read_clock_ns(CLOCK_THREAD_CPUTIME_ID) - begin < ns) {
  }
}

double cpu_of_process() { return read_clock_ns(CLOCK_PROCESS_CPUTIME_ID); }

constexpr double kMs = 1e6;

TEST(KnownThreads, finds_a_threads_clock_by_its_id) {
  EXPECT_EQ(thread_of_clock(clock_of_thread(gettid())), gettid());
  const double by_id = read_clock_ns(clock_of_thread(gettid()));
  EXPECT_GT(by_id, 0);
  EXPECT_LE(by_id, read_clock_ns(CLOCK_THREAD_CPUTIME_ID));
  EXPECT_EQ(read_clock_ns(clock_of_thread(1 << 22)), 0) << "there is no such thread";
}

TEST(KnownThreads, knows_a_thread_as_long_as_its_lease_lives) {
  KnownThreads known;
  EXPECT_FALSE(known.contains(gettid()));
  std::optional<KnownThreads::Lease> lease = known.add_this_thread();
  EXPECT_TRUE(known.contains(gettid()));
  KnownThreads::Lease moved = std::move(*lease);
  lease.reset();
  EXPECT_TRUE(known.contains(gettid())) << "the lease moved on";
  moved = {};
  EXPECT_FALSE(known.contains(gettid()));
}

TEST(KnownThreads, knows_what_a_library_began_but_not_what_ran_before_it) {
  KnownThreads known;
  std::atomic<bool> done = false;
  std::atomic<pid_t> ran_before = 0, began = 0;
  const auto wait = [&](std::atomic<pid_t>& id) {
    id = gettid();
    id.notify_one();
    done.wait(false);
  };
  std::thread first(wait, std::ref(ran_before));
  ran_before.wait(0);
  const std::vector<pid_t> then = thread_ids(getpid());
  std::thread second(wait, std::ref(began));
  began.wait(0);
  const auto lease = known.add_younger_than(then);
  EXPECT_TRUE(known.contains(began));
  EXPECT_FALSE(known.contains(ran_before));
  EXPECT_FALSE(known.contains(gettid()));
  done = true;
  done.notify_all();
  first.join();
  second.join();
}

TEST(KnownThreads, keeps_the_time_of_threads_that_ended) {
  KnownThreads known;
  std::thread([&] {
    const auto lease = known.add_this_thread();
    use_cpu(2 * kMs);
  }).join();
  EXPECT_GE(known.cpu_ns(), 2 * kMs);
  known.add_spent(3 * kMs);
  EXPECT_GE(known.cpu_ns(), 5 * kMs);
}

TEST(KnownThreads, knows_the_workers_of_a_pool) {
  KnownThreads known;
  ThreadPool pool({allowed_cpus().front(), allowed_cpus().back()});
  const auto lease = known.add(pool);
  std::atomic<pid_t> worker = 0;
  pool.run([&](int index) {
    if (index == 1) worker = gettid();
  });
  EXPECT_TRUE(known.contains(worker));
  EXPECT_FALSE(known.contains(gettid())) << "the caller is no worker of the pool's";
}

TEST(UnknownWork, sees_nothing_where_every_thread_is_known) {
  const auto known = std::make_shared<KnownThreads>();
  const auto lease = known->add_this_thread();
  ThreadPool pool({allowed_cpus().front(), allowed_cpus().back()});
  const auto workers = known->add(pool);
  const UnknownWork unknown(known);
  int heard = 0;
  for (int i = 0; i < 100; ++i) {
    const auto before = unknown.read();
    pool.run([](int) { use_cpu(0.1 * kMs); });
    heard += UnknownWork::threads_ns(before, unknown.read()) > 0;
  }
  // A sanitizer's own thread may wake up now and then.
  EXPECT_LE(heard, 5);
}

TEST(UnknownWork, sees_what_an_unknown_thread_used_while_it_runs) {
  const auto known = std::make_shared<KnownThreads>();
  const auto lease = known->add_this_thread();
  const UnknownWork unknown(known);
  std::atomic<bool> stop = false;
  std::thread busy([&] {
    pin_this_thread(allowed_cpus().front());
    while (!stop) {
    }
  });
  const auto first = unknown.read();
  const double begin = cpu_of_process();
  auto last = first;
  // Its own clock is asked for, so that a window far below a tick is enough.
  while (UnknownWork::threads_ns(first, last) < 0.5 * kMs) last = unknown.read();
  EXPECT_LT(UnknownWork::threads_ns(first, last), cpu_of_process() - begin + kMs);
  stop = true;
  busy.join();
  const auto after = unknown.read();
  EXPECT_GE(UnknownWork::threads_ns(first, after), UnknownWork::threads_ns(first, last))
      << "what a thread used stays when it ends";
}

TEST(UnknownWork, forgets_a_thread_that_the_lab_makes_its_own) {
  const auto known = std::make_shared<KnownThreads>();
  const auto lease = known->add_this_thread();
  const UnknownWork unknown(known);
  const auto before = unknown.read();
  std::thread([&] {
    const auto own = known->add_this_thread();
    use_cpu(5 * kMs);
  }).join();
  // But for what it takes to start and end a thread.
  EXPECT_LT(UnknownWork::threads_ns(before, unknown.read()), 4 * kMs);
  const auto again = unknown.read();
  std::thread([] { use_cpu(5 * kMs); }).join();
  EXPECT_GE(UnknownWork::threads_ns(again, unknown.read()), 4.5 * kMs);
}

}  // namespace
}  // namespace gauntlet::lab::inline measure
