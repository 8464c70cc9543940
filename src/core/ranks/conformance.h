// What every transport must do; tests run it on each rank of a group.
#pragma once
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <limits>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

#include "core/ranks/group.h"

namespace gauntlet::ranks {

inline void expect_ok(const Expected<void>& done) {
  EXPECT_TRUE(done) << (done ? "" : done.error().message);
}

template <class T>
std::vector<T> gathered(Group& group, const std::vector<T>& own) {
  std::vector<T> all(own.size() * static_cast<std::size_t>(group.size()));
  expect_ok(
      group.all_gather(std::as_bytes(std::span(own)), std::as_writable_bytes(std::span(all))));
  return all;
}

/// Passes bytes of several sizes, none among them, from each root in turn.
inline void broadcasts_from_every_root(Group& group) {
  for (int root = 0; root < group.size(); ++root) {
    for (const std::size_t count : {0u, 1u, 7u, 1000u, 300001u}) {
      std::vector<std::int32_t> expected(count), own(count, -1);
      std::iota(expected.begin(), expected.end(), 1000 * root);
      if (group.rank() == root) own = expected;
      expect_ok(group.broadcast(std::as_writable_bytes(std::span(own)), root));
      EXPECT_TRUE(own == expected)
          << count << " numbers from rank " << root << " on rank " << group.rank();
    }
  }
}

/// Ranks are told apart by what they bring, and their order is kept.
inline void gathers_in_the_order_of_ranks(Group& group) {
  for (const std::size_t count : {0u, 1u, 5u, 100003u}) {
    const std::vector<std::int32_t> own(count, group.rank() + 1);
    const auto all = gathered(group, own);
    for (std::size_t i = 0; i < all.size(); ++i) {
      ASSERT_EQ(all[i], static_cast<std::int32_t>(i / count) + 1) << "number " << i;
    }
  }
}

/// Nobody leaves a barrier before the last one has come, whoever that is; ranks on one machine read
/// the same monotonic clock.
inline void barriers_hold_everyone_back(Group& group) {
  using Clock = std::chrono::steady_clock;
  for (int round = 0; round < 12; ++round) {
    if (group.rank() == round % group.size()) {
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
    }
    const std::vector came = {Clock::now().time_since_epoch().count()};
    expect_ok(group.barrier());
    const std::vector left = {Clock::now().time_since_epoch().count()};
    const auto all_came = gathered(group, came);
    const auto all_left = gathered(group, left);
    EXPECT_GE(*std::ranges::min_element(all_left), *std::ranges::max_element(all_came));
  }
}

inline void helpers_agree(Group& group) {
  const double size = group.size();
  EXPECT_EQ(all_max(group, -1.0 - group.rank()).value(), -1.0);
  EXPECT_EQ(all_max(group, group.rank()).value(), size - 1);
  const bool last = group.rank() == group.size() - 1;
  const double nan = std::numeric_limits<double>::quiet_NaN();
  EXPECT_TRUE(std::isnan(all_max(group, last ? nan : 1e300).value()));
  EXPECT_TRUE(all_true(group, true).value());
  EXPECT_FALSE(all_true(group, !last).value());
  EXPECT_EQ(agree(group, 41 + group.rank()).value(), 41);
  EXPECT_EQ(agree(group, "rank " + std::string(1, static_cast<char>('0' + group.rank())) +
                             std::string(static_cast<std::size_t>(group.rank()) * 9, '!'))
                .value(),
            "rank 0");
  EXPECT_EQ(agree(group, std::string(group.rank() == 0 ? "" : "not empty")).value(), "");
  const auto text_of = [](int rank) {
    return std::string(static_cast<std::size_t>(rank) * 7, 'x');
  };
  const auto texts = gather(group, text_of(group.rank())).value();
  ASSERT_EQ(texts.size(), static_cast<std::size_t>(group.size()));
  for (int rank = 0; rank < group.size(); ++rank) {
    EXPECT_EQ(texts[static_cast<std::size_t>(rank)], text_of(rank));
  }
}

inline void refuses_wrong_use(Group& group) {
  std::vector<std::byte> bytes(3), room(7);
  EXPECT_THROW((void)group.broadcast(bytes, group.size()), Fault);
  EXPECT_THROW((void)group.broadcast(bytes, -1), Fault);
  EXPECT_THROW((void)group.all_gather(bytes, room), Fault);
  expect_ok(group.barrier());
}

inline void conforms(Group& group) {
  EXPECT_GE(group.rank(), 0);
  EXPECT_LT(group.rank(), group.size());
  broadcasts_from_every_root(group);
  gathers_in_the_order_of_ranks(group);
  barriers_hold_everyone_back(group);
  helpers_agree(group);
  refuses_wrong_use(group);
}

}  // namespace gauntlet::ranks
