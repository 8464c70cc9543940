#include "engine/sampling/adjustments.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace gauntlet::engine::inline sampling {
namespace {

using Logits = std::vector<float>;
using Ids = std::vector<std::int32_t>;

TEST(Adjustments, repetition_counts_prompt_and_output_once_and_pulls_both_signs_down) {
  SeenTokens seen(Ids{0, 1, 1});
  seen.add_output(2);
  seen.add_output(2);
  Logits logits = {4, -4, 2, 3};
  seen.adjust({.repetition_penalty = 2}, logits);
  EXPECT_EQ(logits, (Logits{2, -8, 1, 3}));
}

TEST(Adjustments, presence_and_frequency_count_the_output_alone) {
  SeenTokens seen(Ids{0});
  for (const std::int32_t token : {1, 2, 2, 2}) seen.add_output(token);
  Logits logits = {5, 5, 5, 5};
  seen.adjust({.presence_penalty = 1, .frequency_penalty = 0.5f}, logits);
  EXPECT_EQ(logits, (Logits{5, 3.5f, 2.5f, 5}));
}

TEST(Adjustments, bias_is_added_last) {
  SeenTokens seen(Ids{0});
  Logits logits = {4, 0};
  seen.adjust({.repetition_penalty = 2, .bias = {{0, -100.0f}, {1, 1.5f}}}, logits);
  EXPECT_EQ(logits, (Logits{-98, 1.5f}));
}

TEST(Adjustments, log_probabilities_sum_to_one_and_ties_go_to_the_lowest_id) {
  const Logits logits = {1, 3, 1, 2};
  const auto top = top_log_probs(logits, 10);
  ASSERT_EQ(top.size(), 4u);
  EXPECT_EQ(top[0].token, 1);
  EXPECT_EQ(top[1].token, 3);
  EXPECT_EQ(top[2].token, 0);
  EXPECT_EQ(top[3].token, 2);
  double sum = 0;
  for (const auto& [token, value] : top) {
    sum += std::exp(value);
    EXPECT_EQ(value, log_probability(logits, token));
  }
  EXPECT_NEAR(sum, 1, 1e-6);
}

TEST(Adjustments, logits_that_no_token_can_have_stay_out_of_the_way) {
  const float none = -std::numeric_limits<float>::infinity();
  SeenTokens seen(Ids{0, 1});
  Logits logits = {none, 1};
  seen.adjust({.repetition_penalty = 1.5f, .bias = {{0, 100.0f}}}, logits);
  EXPECT_EQ(logits[0], none);
  EXPECT_NEAR(log_probability(logits, 1), 0, 1e-6);
}

}  // namespace
}  // namespace gauntlet::engine::inline sampling
