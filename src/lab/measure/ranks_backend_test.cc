#include "lab/measure/ranks_backend.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <thread>

#include "core/ranks/thread_group.h"
#include "lab/measure/fake_backend.h"
#include "lab/measure/measure.h"

namespace gauntlet::lab::inline measure {
namespace {

using std::chrono::milliseconds;

/// Runs `body` on each of some ranks that are threads and know each other's.
void on_ranks(int count, const std::function<void(Backend&)>& body) {
  const auto known = std::make_shared<KnownThreads>();
  const auto ended = ranks::run_threads(count, [&](ranks::Group& group) -> Expected<void> {
    const auto backend = make_ranks_backend(group, known);
    body(*backend);
    return {};
  });
  EXPECT_TRUE(ended) << (ended ? "" : ended.error().message);
}

/// Uses this much CPU time.
void spin(milliseconds time) {
  const auto until = std::chrono::steady_clock::now() + time;
  while (std::chrono::steady_clock::now() < until) {
  }
}

TEST(RanksBackend, knows_its_place) {
  std::atomic<int> sum = 0;
  on_ranks(3, [&](Backend& backend) {
    EXPECT_EQ(backend.kind(), BackendKind::ranks);
    EXPECT_EQ(backend.num_ranks(), 3);
    sum += 1 << (4 * backend.rank());
  });
  EXPECT_EQ(sum, 0x111);
}

TEST(RanksBackend, takes_the_time_of_the_slowest_rank) {
  on_ranks(2, [](Backend& backend) {
    backend.watch();
    const Timing timing = backend.time(
        [&] { std::this_thread::sleep_for(milliseconds(backend.rank() == 1 ? 20 : 0)); },
        Backend::Caches::as_they_are);
    EXPECT_GE(timing.ns, 20e6) << "on rank " << backend.rank();
  });
}

TEST(RanksBackend, starts_no_clock_before_all_are_ready) {
  on_ranks(2, [](Backend& backend) {
    backend.watch();
    if (backend.rank() == 1) std::this_thread::sleep_for(milliseconds(200));
    const Timing timing = backend.time([] {}, Backend::Caches::as_they_are);
    EXPECT_LT(timing.ns, 100e6) << "rank 0 waited for rank 1 before its clock started";
  });
}

TEST(RanksBackend, does_not_take_other_ranks_for_work_of_a_side) {
  on_ranks(2, [](Backend& backend) {
    for (int sample = 0; sample < 5; ++sample) {
      backend.watch();
      // Rank 1 makes inputs while rank 0 listens, and the other way round.
      if (backend.rank() == sample % 2) spin(milliseconds(3));
      const Timing timing = backend.time(
          [&] {
            if (backend.rank() == sample % 2) spin(milliseconds(3));
          },
          Backend::Caches::as_they_are);
      EXPECT_EQ(timing.before_ns, 0);
      EXPECT_EQ(timing.after_ns, 0);
    }
  });
}

TEST(RanksBackend, tells_every_rank_of_work_that_one_leaves_behind) {
  on_ranks(2, [](Backend& backend) {
    std::jthread left;
    std::atomic<bool> stop = false;
    backend.watch();
    const Timing timing = backend.time(
        [&] {
          if (backend.rank() == 1) {
            left = std::jthread([&] {
              while (!stop) {
              }
            });
          }
        },
        Backend::Caches::as_they_are);
    stop = true;
    EXPECT_GT(timing.after_ns, 0) << "on rank " << backend.rank();
  });
}

TEST(RanksBackend, decides_alike) {
  on_ranks(3, [](Backend& backend) {
    EXPECT_EQ(backend.agree(10.0 + backend.rank()), 10.0);
    EXPECT_TRUE(backend.all_agree(true));
    EXPECT_FALSE(backend.all_agree(backend.rank() != 2));
  });
}

TEST(RanksBackend, shares_the_room_for_buffers) {
  std::int64_t alone = 0;
  on_ranks(1, [&](Backend& backend) { alone = backend.set_bytes_limit(Cost::Level::dram); });
  on_ranks(4, [&](Backend& backend) {
    EXPECT_EQ(backend.set_bytes_limit(Cost::Level::dram), alone / 4);
  });
}

TEST(RanksBackend, ends_the_measuring_of_those_whose_rank_is_lost) {
  const auto ended = ranks::run_threads(2, [](ranks::Group& group) -> Expected<void> {
    const auto backend = make_ranks_backend(group);
    if (backend->rank() == 1) return Error{"gave up"};
    backend->synchronize();
    return {};
  });
  ASSERT_FALSE(ended);
  EXPECT_THAT(ended.error().message, testing::HasSubstr("gave up"));
}

}  // namespace
}  // namespace gauntlet::lab::inline measure
