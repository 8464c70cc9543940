#include "server/http/large_body_pool.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <latch>
#include <semaphore>

namespace gauntlet::server::inline http {
namespace {

constexpr std::size_t kMiB = 1 << 20;

TEST(LargeBodyPool, takes_a_small_body_while_the_largest_are_worked_on) {
  LargeBodyPool pool;
  std::counting_semaphore<> let_go{0};
  std::latch all_done(12);
  for (int i = 0; i < 12; ++i) {
    pool.post(16 * kMiB, [&] {
      let_go.acquire();
      all_done.count_down();
    });
  }
  std::latch small_done(1);
  pool.post(80 << 10, [&] { small_done.count_down(); });
  small_done.wait();
  EXPECT_FALSE(all_done.try_wait());
  let_go.release(12);
  all_done.wait();
}

TEST(LargeBodyPool, lets_smaller_ones_overtake_and_works_on_one_large_body_at_a_time) {
  LargeBodyPool pool;
  std::mutex mutex;
  std::vector<int> order;
  std::binary_semaphore let_go{0};
  std::latch has_begun(1), done(3);
  std::atomic<int> num_running = 0;
  const auto job = [&](int name) {
    return [&, name] {
      EXPECT_EQ(++num_running, 1);
      {
        const std::lock_guard lock(mutex);
        order.push_back(name);
      }
      --num_running;
      done.count_down();
    };
  };
  pool.post(2 * kMiB, [&] {
    has_begun.count_down();
    let_go.acquire();
  });
  has_begun.wait();
  pool.post(16 * kMiB, job(16));
  pool.post(8 * kMiB, job(8));
  pool.post(2 * kMiB, job(2));
  let_go.release();
  done.wait();
  EXPECT_THAT(order, testing::ElementsAre(2, 8, 16));
}

TEST(LargeBodyPool, drops_what_has_not_begun_when_it_ends) {
  std::atomic<int> num_run = 0;
  std::binary_semaphore let_go{0};
  std::latch has_begun(1);
  std::thread releases;
  {
    LargeBodyPool pool;
    pool.post(2 * kMiB, [&] {
      has_begun.count_down();
      let_go.acquire();
      ++num_run;
    });
    has_begun.wait();
    pool.post(2 * kMiB, [&] { ++num_run; });
    releases = std::thread([&] { let_go.release(); });
  }
  releases.join();
  EXPECT_GE(num_run, 1);
}

}  // namespace
}  // namespace gauntlet::server::inline http
