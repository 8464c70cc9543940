#include "core/ranks/thread_group.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <pthread.h>

#include <atomic>
#include <chrono>
#include <stdexcept>
#include <thread>

#include "core/os/threads.h"
#include "core/ranks/conformance.h"

namespace gauntlet::ranks {
namespace {

using testing::HasSubstr;

double seconds_of(const std::function<void()>& work) {
  const auto begin = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

std::string error_of(const Expected<void>& done) { return done ? "" : done.error().message; }

class ThreadGroupOfSize : public testing::TestWithParam<int> {};

TEST_P(ThreadGroupOfSize, conforms) {
  std::atomic<int> bodies = 0;
  const auto done = run_threads(GetParam(), [&](Group& group) -> Expected<void> {
    ++bodies;
    EXPECT_EQ(group.size(), GetParam());
    EXPECT_EQ(group.transport(), "threads");
    conforms(group);
    conforms_over_links(group);
    return {};
  });
  EXPECT_EQ(error_of(done), "");
  EXPECT_EQ(bodies, GetParam());
}

INSTANTIATE_TEST_SUITE_P(, ThreadGroupOfSize, testing::Values(1, 2, 4, 7));

TEST(ThreadGroup, fails_the_others_at_once_when_a_rank_throws) {
  std::string seen;
  const double seconds = seconds_of([&] {
    const auto done = run_threads(3, [&](Group& group) -> Expected<void> {
      if (group.rank() == 2) throw std::runtime_error("no more memory");
      const auto met = group.barrier();
      if (group.rank() == 0) seen = error_of(met);
      return met;
    });
    EXPECT_EQ(error_of(done), "rank 2: no more memory");
  });
  EXPECT_EQ(seen, "rank 2 ended before a barrier of 3 ranks: no more memory");
  EXPECT_LT(seconds, 10);
}

TEST(ThreadGroup, fails_the_others_when_a_rank_returns_an_error) {
  const auto done = run_threads(2, [&](Group& group) -> Expected<void> {
    if (group.rank() == 1) return Error{"the file is empty"};
    return group.barrier();
  });
  EXPECT_EQ(error_of(done), "rank 1: the file is empty");
}

TEST(ThreadGroup, fails_the_others_when_a_rank_leaves_early) {
  std::atomic<bool> waited = false;
  const auto done = run_threads(2, [&](Group& group) -> Expected<void> {
    if (group.rank() == 0) return {};
    waited = true;
    return group.broadcast({}, 0);
  });
  EXPECT_TRUE(waited);
  EXPECT_EQ(error_of(done),
            "rank 1: rank 0 ended before a broadcast of 0 bytes from rank 0 of 2 ranks");
}

TEST(ThreadGroup, reports_a_lost_rank_though_the_others_ignore_it) {
  const auto done = run_threads(2, [&](Group& group) -> Expected<void> {
    if (group.rank() == 0) (void)group.barrier();
    return {};
  });
  EXPECT_EQ(error_of(done), "rank 1 ended before a barrier of 2 ranks");
}

TEST(ThreadGroup, gives_a_silent_rank_up_at_the_limit_of_one_wait) {
  std::string seen;
  std::atomic<bool> gave_up = false;
  const auto done = run_threads(2, [&](Group& group) -> Expected<void> {
    if (group.rank() == 1) {
      const auto sent = group.receive_any(0, 0.1);
      seen = sent ? "" : sent.error().message;
      gave_up = true;
      return {};
    }
    while (!gave_up) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    return {};
  });
  EXPECT_EQ(seen,
            "rank 0 did not come to a receive of any length by rank 1 of 2 ranks within 0.1 s");
  EXPECT_EQ(error_of(done), seen);
}

TEST(ThreadGroup, takes_another_limit_for_all_of_a_ranks_groups) {
  std::string seen;
  std::atomic<bool> gave_up = false;
  const auto done = run_threads(2, [&](Group& group) -> Expected<void> {
    const auto part = group.split(0);
    if (!part) return part.error();
    group.set_timeout(0.15);
    if (group.rank() == 0) {
      seen = error_of((*part)->barrier());
      gave_up = true;
    }
    while (!gave_up) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    return {};
  });
  EXPECT_EQ(seen, "rank 1 did not come to a barrier of 2 ranks within 0.15 s");
}

TEST(ThreadGroup, counts_what_each_rank_sends_and_waits) {
  const auto done = run_threads(2, [&](Group& group) -> Expected<void> {
    if (group.rank() == 1) std::this_thread::sleep_for(std::chrono::milliseconds(80));
    std::vector<float> numbers(100, 1);
    if (const auto summed = group.all_sum(numbers); !summed) return summed;
    const std::vector<std::byte> bytes(7);
    if (group.rank() == 1) return group.send(0, bytes);
    if (const auto sent = group.receive_any(1); !sent) return sent.error();
    EXPECT_EQ(group.traffic().sent_bytes, 400);
    EXPECT_EQ(group.traffic().messages, 1);
    EXPECT_GT(group.traffic().waited_s, 0.04);
    return {};
  });
  EXPECT_EQ(error_of(done), "");
}

TEST(ThreadGroup, names_the_rank_that_does_not_come_within_the_limit) {
  std::atomic<bool> all_gave_up = false;
  std::atomic<int> gave_up = 0;
  std::string seen;
  const auto done = run_threads(3,
                                [&](Group& group) -> Expected<void> {
                                  if (group.rank() == 1) {
                                    while (!all_gave_up)
                                      std::this_thread::sleep_for(std::chrono::milliseconds(1));
                                    return group.barrier();
                                  }
                                  const double seconds = seconds_of([&] {
                                    const auto met = group.barrier();
                                    if (group.rank() == 0) seen = error_of(met);
                                    EXPECT_FALSE(met);
                                  });
                                  EXPECT_LT(seconds, 10);
                                  if (++gave_up == 2) all_gave_up = true;
                                  return group.barrier();
                                },
                                {.timeout_s = 0.2});
  EXPECT_EQ(seen, "rank 1 did not come to a barrier of 3 ranks within 0.2 s");
  EXPECT_THAT(error_of(done), HasSubstr(seen)) << "later calls fail with the same sentence";
}

TEST(ThreadGroup, tells_calls_that_do_not_match) {
  const auto done = run_threads(2, [&](Group& group) -> Expected<void> {
    std::byte byte{};
    if (group.rank() == 0) return group.barrier();
    return group.broadcast(std::span(&byte, 1), 0);
  });
  EXPECT_THAT(error_of(done), HasSubstr("rank 1 called a broadcast of 1 bytes from rank 0 where "
                                        "rank 0 called a barrier"));
}

TEST(ThreadGroup, tells_parts_whose_sizes_do_not_match) {
  const auto done = run_threads(2, [&](Group& group) -> Expected<void> {
    const bool first = group.rank() == 0;
    const std::vector<std::size_t> sent_sizes = {first ? 4u : 5u, first ? 5u : 4u};
    const std::vector<std::size_t> received_sizes = {first ? 4u : 3u, first ? 5u : 4u};
    const std::vector<std::byte> sent(9);
    std::vector<std::byte> received(first ? 9 : 7);
    return group.all_to_all({.sent = sent,
                             .sent_sizes = sent_sizes,
                             .received = received,
                             .received_sizes = received_sizes});
  });
  EXPECT_THAT(error_of(done),
              HasSubstr("rank 0 sent 5 bytes in an all-to-all where rank 1 expects 3"));
}

TEST(ThreadGroup, names_all_ranks_that_do_not_come) {
  std::atomic<bool> over = false;
  const auto done = run_threads(4,
                                [&](Group& group) -> Expected<void> {
                                  if (group.rank() == 0) {
                                    const auto met = group.barrier();
                                    over = true;
                                    return met;
                                  }
                                  while (!over) {
                                    std::this_thread::sleep_for(std::chrono::milliseconds(1));
                                  }
                                  return {};
                                },
                                {.timeout_s = 0.1});
  EXPECT_EQ(error_of(done),
            "rank 0: ranks 1, 2, 3 did not come to a barrier of 4 ranks within 0.1 s");
}

TEST(ThreadGroup, names_ranks_of_a_part_by_their_number_in_the_job) {
  const auto done = run_threads(4, [&](Group& group) -> Expected<void> {
    auto half = group.split(group.rank() / 2);
    if (!half) return half.error();
    if (group.rank() == 3) return Error{"no more memory"};
    if (group.rank() == 2) return (*half)->barrier();
    return {};
  });
  EXPECT_EQ(error_of(done), "rank 3: no more memory");
}

TEST(ThreadGroup, gives_up_waiting_for_a_flag_that_nobody_raises) {
  const auto done = run_threads(2,
                                [&](Group& group) -> Expected<void> {
                                  auto window = group.open_window(8, 1);
                                  if (!window) return window.error();
                                  if (group.rank() == 0) {
                                    const auto raised = (*window)->wait(0, 1);
                                    (void)group.barrier();
                                    return raised;
                                  }
                                  std::this_thread::sleep_for(std::chrono::milliseconds(400));
                                  return {};
                                },
                                {.timeout_s = 0.1});
  EXPECT_EQ(error_of(done),
            "rank 0: flag 0 of rank 0 was raised 0 times instead of 1 within 0.1 s");
}

TEST(ThreadGroup, names_the_rank_that_a_started_collective_misses) {
  const auto done = run_threads(2, [&](Group& group) -> Expected<void> {
    auto starter = make_starter(group, {.timeout_s = 0.1});
    if (!starter) return starter.error();
    std::vector<float> numbers(3);
    if (group.rank() == 1) {
      std::this_thread::sleep_for(std::chrono::milliseconds(400));
      return {};
    }
    auto sum = (*starter)->all_sum(numbers);
    if (!sum) return sum.error();
    return (*sum)->wait();
  });
  EXPECT_EQ(error_of(done),
            "rank 0: rank 1 did not come to an all-sum of 12 bytes of 2 ranks within 0.1 s");
}

TEST(ThreadGroup, tells_started_collectives_that_do_not_match) {
  const auto done = run_threads(2, [&](Group& group) -> Expected<void> {
    auto starter = make_starter(group);
    if (!starter) return starter.error();
    std::vector<float> numbers(group.rank() == 0 ? 3 : 4);
    auto sum = (*starter)->all_sum(numbers);
    if (!sum) return sum.error();
    return (*sum)->wait();
  });
  EXPECT_THAT(error_of(done), HasSubstr(" started an all-sum of "));
  EXPECT_THAT(error_of(done), HasSubstr("all-sum of 12 bytes"));
  EXPECT_THAT(error_of(done), HasSubstr("all-sum of 16 bytes"));
}

TEST(ThreadGroup, names_the_rank_that_ended_before_what_was_started) {
  const auto done = run_threads(2, [&](Group& group) -> Expected<void> {
    auto starter = make_starter(group);
    if (!starter) return starter.error();
    std::vector<float> numbers(3);
    if (group.rank() == 1) return {};
    auto sum = (*starter)->all_sum(numbers);
    if (!sum) return sum.error();
    return (*sum)->wait();
  });
  EXPECT_EQ(error_of(done), "rank 0: rank 1 ended before an all-sum of 12 bytes of 2 ranks");
}

TEST(ThreadGroup, has_no_symmetric_window_where_there_is_no_memory_for_it) {
  const auto done = run_threads(2, [&](Group& group) -> Expected<void> {
    const auto window = open_symmetric_window(group, std::size_t{1} << 60, 1);
    EXPECT_FALSE(window);
    EXPECT_THAT(window ? "" : window.error().message,
                HasSubstr("the ranks share no memory of 2305"));
    return group.barrier();
  });
  EXPECT_EQ(error_of(done), "");
}

TEST(ThreadGroup, gives_up_waiting_at_a_symmetric_window) {
  const auto wait_for = [](bool stays) {
    return run_threads(2, [&](Group& group) -> Expected<void> {
      auto window = open_symmetric_window(group, 8, 1, {.timeout_s = stays ? 0.1 : 30});
      if (!window) return window.error();
      if (group.rank() == 0) return (*window)->wait(0, 1);
      if (stays) std::this_thread::sleep_for(std::chrono::milliseconds(400));
      return {};
    });
  };
  EXPECT_EQ(error_of(wait_for(true)),
            "rank 0: flag 0 of rank 0 was raised 0 times instead of 1 within 0.1 s");
  EXPECT_EQ(error_of(wait_for(false)),
            "rank 0: rank 0 waits for puts, and all others have ended: 1");
}

TEST(ThreadGroup, carries_on_while_no_rank_is_missing) {
  // Ranks that come late, but within the limit, and leave at different times after the last call.
  const auto done = run_threads(2,
                                [&](Group& group) -> Expected<void> {
                                  for (int round = 0; round < 3; ++round) {
                                    if (group.rank() == round % 2) {
                                      std::this_thread::sleep_for(std::chrono::milliseconds(20));
                                    }
                                    if (const auto met = group.barrier(); !met) return met;
                                  }
                                  if (group.rank() == 1)
                                    std::this_thread::sleep_for(std::chrono::milliseconds(20));
                                  return {};
                                },
                                {.timeout_s = 20});
  EXPECT_EQ(error_of(done), "");
}

TEST(ThreadGroup, gives_ranks_all_cpus_though_the_starter_is_pinned) {
  const auto cpus = allowed_cpus();
  std::jthread([&] {
    ASSERT_TRUE(pin_this_thread(cpus.front()));
    const auto done = run_threads(2, [&](Group&) -> Expected<void> {
      cpu_set_t set;
      CPU_ZERO(&set);
      pthread_getaffinity_np(pthread_self(), sizeof(set), &set);
      EXPECT_EQ(CPU_COUNT(&set), static_cast<int>(cpus.size()));
      return {};
    });
    EXPECT_EQ(error_of(done), "");
  });
}

TEST(ThreadGroup, refuses_no_ranks) {
  EXPECT_THROW((void)run_threads(0, [](Group&) -> Expected<void> { return {}; }), Fault);
}

}  // namespace
}  // namespace gauntlet::ranks
