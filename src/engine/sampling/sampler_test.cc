// Does the sampler draw exactly what its parameters say, however odd the logits?
#include "engine/sampling/sampler.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>
#include <set>

#include "core/random.h"

namespace gauntlet::engine::inline sampling {
namespace {

using testing::HasSubstr;

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInfinity = std::numeric_limits<float>::infinity();

std::vector<float> random_logits(std::size_t count, std::uint64_t seed) {
  std::vector<float> logits(count);
  const Random random(seed);
  // Rounded to quarters, so that there are ties.
  for (std::size_t i = 0; i < count; ++i) {
    logits[i] = std::round(random.uniform(-8, 8, i) * 4) / 4;
  }
  return logits;
}

/// What the sampler must do, said plainly: sort everything, then cut.
std::vector<double> probabilities(const std::vector<float>& logits, const SamplingParams& params) {
  std::vector<std::size_t> order(logits.size());
  std::iota(order.begin(), order.end(), 0u);
  std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return logits[a] != logits[b] ? logits[a] > logits[b] : a < b;
  });
  if (params.top_k > 0 && static_cast<std::size_t>(params.top_k) < order.size()) {
    order.resize(static_cast<std::size_t>(params.top_k));
  }
  std::vector<double> result(logits.size(), 0);
  const auto normalise = [&] {
    double total = 0;
    for (const std::size_t id : order) total += result[id];
    for (const std::size_t id : order) result[id] /= total;
  };
  for (const std::size_t id : order) {
    result[id] = std::exp((static_cast<double>(logits[id]) - logits[order[0]]) /
                          static_cast<double>(params.temperature));
  }
  normalise();
  double held = 0;
  for (const std::size_t id : order) {
    const double own = result[id];
    // Away from the rounding of a sum that ends at top-p exactly.
    if (held >= static_cast<double>(params.top_p) + 1e-6) result[id] = 0;
    held += own;
  }
  const double top = result[order[0]];
  for (const std::size_t id : order) {
    if (result[id] < top * static_cast<double>(params.min_p)) result[id] = 0;
  }
  normalise();
  return result;
}

TEST(Sampler, takes_the_largest_logit_and_the_lowest_id_on_ties_when_greedy) {
  EXPECT_EQ(sample(std::vector<float>{1, 3, 2, 3}, {}, {}), 1);
  EXPECT_EQ(sample(std::vector<float>{5}, {}, {}), 0);
  std::vector<float> many(1000, -1.0f);
  many[999] = many[37] = many[36] = 4;
  EXPECT_EQ(sample(many, {}, {}), 36);
}

TEST(Sampler, never_chooses_what_is_not_a_number) {
  const std::vector<float> logits = {kNan, -kInfinity, 0.5f, kNan, 0.25f};
  EXPECT_EQ(sample(logits, {}, {}), 2);
  for (std::int64_t step = 0; step < 200; ++step) {
    const auto token = sample(logits, {.temperature = 3, .top_k = 4, .step = step}, {});
    EXPECT_TRUE(token == 2 || token == 4) << token;
  }
  const std::vector<float> infinite = {0, kInfinity, kNan, kInfinity};
  EXPECT_EQ(sample(infinite, {}, {}), 1);
  for (std::int64_t step = 0; step < 50; ++step) {
    EXPECT_EQ(sample(infinite, {.temperature = 1, .step = step}, {}) % 2, 1);
  }
}

TEST(Sampler, answers_no_choice_when_nothing_is_left) {
  const std::vector<float> nothing = {kNan, -kInfinity};
  EXPECT_EQ(sample(nothing, {}, {}), kNoChoice);
  EXPECT_EQ(sample(nothing, {.temperature = 1}, {}), kNoChoice);
  const std::vector<std::uint32_t> none = {0};
  EXPECT_EQ(sample(std::vector<float>{1, 2}, {}, none), kNoChoice);
  EXPECT_EQ(sample(std::vector<float>{1, 2}, {.temperature = 1, .top_p = 0.5f}, none), kNoChoice);
}

TEST(Sampler, stays_inside_the_mask) {
  const auto logits = random_logits(100, 3);
  std::vector<std::uint32_t> mask(4, 0);
  for (const int id : {5, 40, 99}) mask[id / 32] |= 1u << (id % 32);
  const float best = std::max({logits[5], logits[40], logits[99]});
  EXPECT_EQ(logits[static_cast<std::size_t>(sample(logits, {}, mask))], best);
  for (std::int64_t step = 0; step < 100; ++step) {
    const auto token = sample(logits, {.temperature = 5, .step = step}, mask);
    EXPECT_TRUE(token == 5 || token == 40 || token == 99) << token;
  }
}

struct Case {
  SamplingParams params;
  std::size_t vocab;
};
void PrintTo(const Case& c, std::ostream* out) {
  *out << c.vocab << " tokens, T " << c.params.temperature << ", top-k " << c.params.top_k
       << ", top-p " << c.params.top_p << ", min-p " << c.params.min_p;
}

class SamplerDraws : public testing::TestWithParam<Case> {};

TEST_P(SamplerDraws, each_token_as_often_as_its_probability_says) {
  const auto& [params, vocab] = GetParam();
  const auto logits = random_logits(vocab, 11);
  const auto expected = probabilities(logits, params);
  constexpr int kDraws = 4000;
  std::map<std::int32_t, int> drawn;
  for (int i = 0; i < kDraws; ++i) {
    SamplingParams one = params;
    one.seed = 7;
    one.step = i;
    ++drawn[sample(logits, one, {})];
  }
  for (const auto& [token, count] : drawn) {
    EXPECT_GT(expected.at(static_cast<std::size_t>(token)), 0) << "token " << token << " was cut";
  }
  for (std::size_t id = 0; id < vocab; ++id) {
    const double mean = expected[id] * kDraws;
    EXPECT_NEAR(drawn[static_cast<std::int32_t>(id)], mean, 5 * std::sqrt(mean) + 3) << id;
  }
}

INSTANTIATE_TEST_SUITE_P(
    Shapes, SamplerDraws,
    testing::Values(
        Case{{.temperature = 1}, 300}, Case{{.temperature = 2.5f}, 700},
        Case{{.temperature = 1, .top_k = 1}, 300}, Case{{.temperature = 3, .top_k = 7}, 300},
        Case{{.temperature = 3, .top_k = 200}, 300}, Case{{.temperature = 1, .top_k = 1000}, 300},
        Case{{.temperature = 1, .top_p = 0.9f}, 300}, Case{{.temperature = 4, .top_p = 0.37f}, 500},
        Case{{.temperature = 1, .top_p = 1e-6f}, 300}, Case{{.temperature = 2, .min_p = 0.3f}, 300},
        Case{{.temperature = 2, .min_p = 1}, 300},
        Case{{.temperature = 2, .top_p = 0.8f, .top_k = 40, .min_p = 0.1f}, 1000},
        Case{{.temperature = 1, .top_p = 0.5f}, 1}));

TEST(Sampler, draws_the_same_for_the_same_seed_and_step_and_differs_for_others) {
  const auto logits = random_logits(500, 1);
  const auto run = [&](std::uint64_t seed) {
    std::vector<std::int32_t> tokens;
    for (std::int64_t step = 0; step < 50; ++step) {
      tokens.push_back(sample(logits, {.temperature = 2, .seed = seed, .step = step}, {}));
    }
    return tokens;
  };
  EXPECT_EQ(run(1), run(1));
  EXPECT_NE(run(1), run(2));
  const auto tokens = run(1);
  EXPECT_GT(std::set<std::int32_t>(tokens.begin(), tokens.end()).size(), 10u);
}

TEST(Sampler, takes_the_lower_ids_of_equal_logits_into_top_k) {
  const std::vector<float> equal(100, 1.0f);
  for (std::int64_t step = 0; step < 100; ++step) {
    EXPECT_LT(sample(equal, {.temperature = 1, .top_k = 5, .step = step}, {}), 5);
    EXPECT_LT(sample(equal, {.temperature = 1, .top_p = 0.099f, .step = step}, {}), 10);
  }
}

TEST(Sampler, is_greedy_at_a_vanishing_temperature) {
  const std::vector<float> logits = {1, 1.0001f, -2};
  EXPECT_EQ(sample(logits, {.temperature = 1e-30f}, {}), 1);
}

TEST(SamplingParams, are_refused_with_a_sentence_when_no_draw_can_be_made) {
  const auto refusal = [](const SamplingParams& params) {
    const auto valid = validate(params);
    return valid ? "" : valid.error().message;
  };
  EXPECT_EQ(refusal({.temperature = 0.7f, .top_p = 1, .top_k = 40, .min_p = 0.05f}), "");
  EXPECT_THAT(refusal({.temperature = -1}), HasSubstr("temperature is 0 or more"));
  EXPECT_THAT(refusal({.temperature = kNan}), HasSubstr("temperature"));
  EXPECT_THAT(refusal({.temperature = kInfinity}), HasSubstr("temperature"));
  EXPECT_THAT(refusal({.top_p = 0}), HasSubstr("top-p is above 0"));
  EXPECT_THAT(refusal({.top_p = 1.5f}), HasSubstr("top-p"));
  EXPECT_THAT(refusal({.min_p = kNan}), HasSubstr("min-p"));
  EXPECT_THAT(refusal({.top_k = -3}), HasSubstr("top-k"));
}

}  // namespace
}  // namespace gauntlet::engine::inline sampling
