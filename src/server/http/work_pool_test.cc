#include "server/http/work_pool.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <latch>
#include <memory>
#include <semaphore>

namespace gauntlet::server::inline http {
namespace {

constexpr std::size_t kMiB = 1 << 20;

using Posted = WorkPool::Posted;

/// Of one client.
void post(WorkPool& pool, std::size_t weight_bytes, std::function<void()> run,
          const std::string& client = "a") {
  EXPECT_EQ(pool.post({.client = {client}, .weight_bytes = weight_bytes, .run = std::move(run)}),
            Posted::yes);
}

/// Keeps every worker busy until it is let go.
class Busy {
 public:
  explicit Busy(WorkPool& pool) {
    // Each worker takes the largest that it may, once those that could take it, too, are busy.
    for (const std::size_t bytes : {16 * kMiB, kMiB, std::size_t{64} << 10}) {
      post(
          pool, bytes,
          [gate = gate_] {
            gate->has_begun.release();
            gate->let_go.acquire();
          },
          "busy");
      gate_->has_begun.acquire();
    }
  }
  ~Busy() { let_go(); }
  void let_go() { gate_->let_go.release(std::exchange(num_held_, 0)); }

 private:
  struct Gate {
    std::counting_semaphore<> has_begun{0};
    std::counting_semaphore<> let_go{0};
  };
  /// Also the workers', which may pass it after this is gone.
  std::shared_ptr<Gate> gate_ = std::make_shared<Gate>();
  int num_held_ = 3;
};

TEST(WorkPool, takes_a_small_body_while_the_largest_are_worked_on) {
  WorkPool pool;
  std::counting_semaphore<> let_go{0};
  std::latch all_done(12);
  for (int i = 0; i < 12; ++i) {
    post(pool, 16 * kMiB, [&] {
      let_go.acquire();
      all_done.count_down();
    });
  }
  std::latch small_done(1);
  post(pool, 80 << 10, [&] { small_done.count_down(); });
  small_done.wait();
  EXPECT_FALSE(all_done.try_wait());
  let_go.release(12);
  all_done.wait();
}

TEST(WorkPool, lets_smaller_ones_overtake_and_works_on_one_large_body_at_a_time) {
  WorkPool pool;
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
  post(pool, 2 * kMiB, [&] {
    has_begun.count_down();
    let_go.acquire();
  });
  has_begun.wait();
  post(pool, 16 * kMiB, job(16));
  post(pool, 8 * kMiB, job(8));
  post(pool, 2 * kMiB, job(2));
  let_go.release();
  done.wait();
  EXPECT_THAT(order, testing::ElementsAre(2, 8, 16));
}

TEST(WorkPool, keeps_a_worker_for_light_jobs_while_heavier_ones_are_worked_on) {
  WorkPool pool;
  std::counting_semaphore<> let_go{0};
  std::latch heavy_done(4), light_done(8);
  for (int i = 0; i < 4; ++i) {
    post(pool, kMiB / 2, [&] {
      let_go.acquire();
      heavy_done.count_down();
    });
  }
  for (int i = 0; i < 8; ++i) post(pool, 400, [&] { light_done.count_down(); });
  light_done.wait();
  EXPECT_FALSE(heavy_done.try_wait());
  let_go.release(4);
  heavy_done.wait();
}

TEST(WorkPool, lets_clients_take_turns_however_much_one_of_them_posts) {
  WorkPool pool;
  std::mutex mutex;
  std::string order;
  std::latch done(22);
  {
    Busy busy(pool);
    const auto job = [&](const std::string& name) {
      return [&, name] {
        const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(2);
        while (std::chrono::steady_clock::now() < end) {
        }
        const std::lock_guard lock(mutex);
        order += name;
        done.count_down();
      };
    };
    // So heavy that one worker takes them all.
    for (int i = 0; i < 20; ++i) post(pool, 2 * kMiB, job("m"), "many");
    for (int i = 0; i < 2; ++i) post(pool, 2 * kMiB, job("f"), "few");
  }
  done.wait();
  EXPECT_LE(order.rfind('f'), 4u) << order;
}

TEST(WorkPool, gives_time_by_shares) {
  WorkPool pool;
  std::atomic<int> num_large = 0, num_small = 0;
  std::atomic<bool> ends = false;
  std::latch done(80);
  {
    Busy busy(pool);
    const auto job = [&](std::atomic<int>& count) {
      return [&] {
        const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(2);
        while (std::chrono::steady_clock::now() < end) {
        }
        if (!ends) ++count;
        if (num_large + num_small == 40) ends = true;
        done.count_down();
      };
    };
    for (int i = 0; i < 40; ++i) {
      ASSERT_EQ(
          pool.post({.client = {"large", 3}, .weight_bytes = 2 * kMiB, .run = job(num_large)}),
          Posted::yes);
      ASSERT_EQ(
          pool.post({.client = {"small", 1}, .weight_bytes = 2 * kMiB, .run = job(num_small)}),
          Posted::yes);
    }
  }
  done.wait();
  EXPECT_GT(num_large, 2 * num_small) << "of the first half";
  EXPECT_GT(num_small, 0);
}

TEST(WorkPool, refuses_new_jobs_beyond_its_limits_but_none_of_what_has_begun) {
  WorkPool pool({.jobs = 5, .jobs_of_client = 3});
  std::latch done(6);
  Busy busy(pool);
  const auto posted = [&](const char* client, WorkPool::Job::Stage stage) {
    return pool.post(
        {.client = {client}, .weight_bytes = 1, .stage = stage, .run = [&] { done.count_down(); }});
  };
  using Stage = WorkPool::Job::Stage;
  for (int i = 0; i < 3; ++i) EXPECT_EQ(posted("a", Stage::first), Posted::yes);
  EXPECT_EQ(posted("a", Stage::first), Posted::client_has_too_many);
  for (int i = 0; i < 2; ++i) EXPECT_EQ(posted("b", Stage::first), Posted::yes);
  EXPECT_EQ(posted("c", Stage::first), Posted::queue_is_full);
  EXPECT_EQ(posted("a", Stage::next), Posted::yes);
  busy.let_go();
  done.wait();
}

TEST(WorkPool, drops_what_has_not_begun_when_it_ends) {
  std::atomic<int> num_run = 0;
  std::binary_semaphore let_go{0};
  std::latch has_begun(1);
  std::thread releases;
  {
    WorkPool pool;
    post(pool, 2 * kMiB, [&] {
      has_begun.count_down();
      let_go.acquire();
      ++num_run;
    });
    has_begun.wait();
    post(pool, 2 * kMiB, [&] { ++num_run; });
    releases = std::thread([&] { let_go.release(); });
  }
  releases.join();
  EXPECT_GE(num_run, 1);
}

}  // namespace
}  // namespace gauntlet::server::inline http
