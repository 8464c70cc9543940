// Are a token's experts the largest of its logits, with weights that sum to one, and does each
// expert get the tokens that chose it?
#include "engine/cpu/routing.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <utility>

#include "core/random.h"

namespace gauntlet::engine::cpu {
namespace {

struct Choice {
  std::vector<std::int32_t> experts;
  std::vector<float> weights;
};

Choice choose(const std::vector<float>& logits, std::int64_t k) {
  Choice choice{.experts = std::vector<std::int32_t>(k, -1), .weights = std::vector<float>(k)};
  choose_experts(logits.data(), std::ssize(logits), k, choice.experts.data(),
                 choice.weights.data());
  return choice;
}

/// The twin: a stable sort, and a softmax in double.
Choice sorted_choice(const std::vector<float>& logits, std::int64_t k) {
  std::vector<std::int32_t> order(logits.size());
  std::iota(order.begin(), order.end(), 0);
  std::ranges::sort(order, {}, [&](std::int32_t e) { return std::pair(-logits[e], e); });
  order.resize(k);
  double sum = 0;
  for (const std::int32_t e : order) sum += std::exp(double{logits[e]} - logits[order[0]]);
  Choice choice{.experts = order};
  for (const std::int32_t e : order) {
    choice.weights.push_back(
        static_cast<float>(std::exp(double{logits[e]} - logits[order[0]]) / sum));
  }
  return choice;
}

TEST(ChooseExperts, takes_the_largest_as_a_sort_would) {
  Random random(1);
  for (const std::int64_t experts : {1, 2, 5, 32, 33, 128}) {
    for (const std::int64_t k : {std::int64_t{1}, std::int64_t{4}, experts}) {
      if (k > experts) continue;
      for (int repeat = 0; repeat < 20; ++repeat) {
        std::vector<float> logits(experts);
        // Few values, so that many are equal, and large ones, whose exponentials overflow.
        for (float& logit : logits) logit = static_cast<float>(random.next_below(9)) * 30 - 120;
        const Choice chosen = choose(logits, k);
        const Choice expected = sorted_choice(logits, k);
        ASSERT_EQ(chosen.experts, expected.experts) << k << " of " << experts;
        for (std::int64_t i = 0; i < k; ++i) {
          EXPECT_NEAR(chosen.weights[i], expected.weights[i], 1e-6);
        }
      }
    }
  }
}

TEST(ChooseExperts, gives_weights_of_the_chosen_alone) {
  const Choice chosen = choose({0, std::log(3.0f), -1, 0.5f * std::log(3.0f)}, 2);
  EXPECT_EQ(chosen.experts, (std::vector<std::int32_t>{1, 3}));
  EXPECT_NEAR(chosen.weights[0], std::sqrt(3.0f) / (1 + std::sqrt(3.0f)), 1e-6);
  EXPECT_NEAR(chosen.weights[0] + chosen.weights[1], 1, 1e-6);
}

TEST(ChooseExperts, lets_no_nan_take_a_place_from_a_number) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  EXPECT_EQ(choose({1, 2, nan, 3, nan}, 2).experts, (std::vector<std::int32_t>{3, 1}));
}

TEST(GroupByExpert, gives_each_expert_its_tokens_in_order) {
  Random random(2);
  for (const std::int64_t tokens : {0, 1, 2, 37}) {
    constexpr std::int64_t kExperts = 7, kPerToken = 3;
    std::vector<std::int32_t> experts;
    std::vector<float> weights;
    for (std::int64_t t = 0; t < tokens; ++t) {
      const auto first = random.next_below(kExperts - 1);  // the last is chosen by few
      for (std::uint64_t i = 0; i < kPerToken; ++i) {
        experts.push_back(static_cast<std::int32_t>((first + 2 * i) % kExperts));
        weights.push_back(static_cast<float>(experts.size()));
      }
    }
    Routing routing;
    // A routing is used again, layer by layer.
    routing.slot_token.assign(500, -1);
    group_by_expert(experts.data(), weights.data(), tokens, kPerToken, kExperts, routing);
    ASSERT_EQ(std::ssize(routing.first_slot), kExperts + 1);
    EXPECT_EQ(routing.first_slot.front(), 0);
    ASSERT_EQ(routing.first_slot.back(), tokens * kPerToken);
    ASSERT_EQ(std::ssize(routing.slot_token), tokens * kPerToken);
    ASSERT_EQ(std::ssize(routing.slot_weight), tokens * kPerToken);
    for (std::int32_t e = 0; e < kExperts; ++e) {
      std::int32_t slot = routing.first_slot[e];
      for (std::size_t i = 0; i < experts.size(); ++i) {
        if (experts[i] != e) continue;
        ASSERT_LT(slot, routing.first_slot[e + 1]);
        EXPECT_EQ(routing.slot_token[slot], static_cast<std::int32_t>(i / kPerToken));
        EXPECT_EQ(routing.slot_weight[slot], weights[i]);
        ++slot;
      }
      EXPECT_EQ(slot, routing.first_slot[e + 1]) << "expert " << e;
    }
  }
}

}  // namespace
}  // namespace gauntlet::engine::cpu
