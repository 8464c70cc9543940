#include "lab/author/counts/worker_times.h"

#include <gtest/gtest.h>

#include <thread>

#include "core/os/threads.h"

namespace gauntlet::lab::inline author::inline counts {
namespace {

TEST(WorkerTimes, tell_workers_that_end_together_from_one_that_ends_late) {
  using std::chrono::milliseconds;
  ThreadPool pool(std::vector<int>(4, allowed_cpus().front()));
  const auto even = std::make_shared<WorkerTimes>(&pool);
  const auto uneven = std::make_shared<WorkerTimes>(&pool);
  const Side together = counted(last_worker(even), [&] {
    even->run([](int) { std::this_thread::sleep_for(milliseconds(40)); });
  });
  int run = 0;
  const Side late = counted(last_worker(uneven), [&] {
    const int last = run++ % 4;  // another one in each run
    uneven->run(
        [&](int worker) { std::this_thread::sleep_for(milliseconds(worker == last ? 80 : 20)); });
  });
  for (int i = 0; i < 2; ++i) {
    together.run();
    late.run();
  }
  EXPECT_LT(together.take_outcomes().values.at("last_worker"), 1.3);
  // 80 ms per 35 ms, and less where this machine makes the others late.
  const double of_late = late.take_outcomes().values.at("last_worker");
  EXPECT_GT(of_late, 1.5);
  EXPECT_LT(of_late, 2.4);
}

}  // namespace
}  // namespace gauntlet::lab::inline author::inline counts
