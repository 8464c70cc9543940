#include "server/http/body_budget.h"

#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "core/random.h"

namespace gauntlet::server::inline http {
namespace {

using Clock = BodyBudget::Clock;
constexpr BodyBudget::Limits kLimits{.bytes = 1000, .slow_bytes_per_s = 100, .grace_s = 1};

Clock::time_point at(double seconds) {
  return Clock::time_point() + std::chrono::milliseconds(static_cast<int>(seconds * 1e3));
}
std::function<void()> count(int& drops) {
  return [&drops] { ++drops; };
}

TEST(BodyBudget, drops_the_largest_body_that_stalled_for_one_that_flows) {
  BodyBudget budget(kLimits);
  int small_drops = 0, large_drops = 0, flowing_drops = 0;
  BodyBudget::Share small(budget, count(small_drops)), large(budget, count(large_drops)),
      flowing(budget, count(flowing_drops));
  EXPECT_TRUE(small.grow_to(100, at(0)));
  EXPECT_TRUE(large.grow_to(800, at(0)));
  EXPECT_FALSE(flowing.grow_to(200, at(0.5))) << "nobody is slow yet";
  EXPECT_TRUE(flowing.grow_to(200, at(1.5)));
  EXPECT_EQ(small_drops, 0);
  EXPECT_EQ(large_drops, 1);
  EXPECT_TRUE(large.was_dropped());
  EXPECT_FALSE(large.grow_to(801, at(1.6)));
  EXPECT_FALSE(large.complete());
}

TEST(BodyBudget, is_not_deceived_by_a_body_that_came_fast_and_then_stalls) {
  BodyBudget budget(kLimits);
  int drops = 0;
  BodyBudget::Share burst(budget, count(drops));
  for (int i = 1; i <= 9; ++i) EXPECT_TRUE(burst.grow_to(100 * i, at(0.01 * i)));
  BodyBudget::Share flowing(budget, [] {});
  EXPECT_FALSE(flowing.grow_to(200, at(1.0))) << "a pause is nothing yet";
  EXPECT_TRUE(flowing.grow_to(200, at(1.2)));
  EXPECT_EQ(drops, 1);
}

TEST(BodyBudget, is_not_deceived_by_a_trickle) {
  BodyBudget budget(kLimits);
  int drops = 0;
  BodyBudget::Share trickle(budget, count(drops));
  EXPECT_TRUE(trickle.grow_to(900, at(0)));
  for (int i = 1; i < 50; ++i) EXPECT_TRUE(trickle.grow_to(900 + i, at(0.3 * i)));
  BodyBudget::Share flowing(budget, [] {});
  EXPECT_TRUE(flowing.grow_to(200, at(0.3 * 50)));
  EXPECT_EQ(drops, 1);
}

TEST(BodyBudget, keeps_bodies_that_are_whole_or_flow) {
  BodyBudget budget(kLimits);
  int drops = 0;
  BodyBudget::Share whole(budget, count(drops)), flowing(budget, count(drops));
  EXPECT_TRUE(whole.grow_to(400, at(0)));
  EXPECT_TRUE(whole.complete());
  for (int i = 1; i <= 40; ++i) EXPECT_TRUE(flowing.grow_to(15 * i, at(0.1 * i)));
  BodyBudget::Share late(budget, [] {});
  EXPECT_FALSE(late.grow_to(1, at(4.1)));
  EXPECT_EQ(drops, 0);
  whole.release();
  EXPECT_TRUE(late.grow_to(400, at(4.1)));
}

TEST(BodyBudget, never_holds_more_than_its_limit) {
  Random random(3);
  BodyBudget budget(kLimits);
  std::vector<std::unique_ptr<BodyBudget::Share>> shares;
  std::vector<std::uint64_t> held;
  double now_s = 0;
  for (int step = 0; step < 5000; ++step) {
    now_s += 0.01 * static_cast<double>(random.next_below(50));
    if (shares.size() < 8) {
      shares.push_back(std::make_unique<BodyBudget::Share>(budget, [] {}));
      held.push_back(0);
    }
    const std::size_t i = random.next_below(shares.size());
    if (random.next_below(4) == 0) {
      shares.erase(shares.begin() + static_cast<std::ptrdiff_t>(i));
      held.erase(held.begin() + static_cast<std::ptrdiff_t>(i));
      continue;
    }
    const std::uint64_t wanted = held[i] + random.next_below(400);
    if (shares[i]->grow_to(wanted, at(now_s))) held[i] = wanted;
    std::uint64_t sum = 0;
    for (std::size_t k = 0; k < shares.size(); ++k) {
      if (shares[k]->was_dropped()) held[k] = 0;
      sum += held[k];
    }
    ASSERT_LE(sum, kLimits.bytes);
  }
  shares.clear();
  BodyBudget::Share all(budget, [] {});
  EXPECT_TRUE(all.grow_to(kLimits.bytes, at(now_s))) << "nothing was lost";
}

}  // namespace
}  // namespace gauntlet::server::inline http
