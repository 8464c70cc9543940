// Are tokens routed and dispatched as defined, alone and in company?
#include "kernels/cuda/routing/router.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <set>

#include "core/random.h"
#include "kernels/cuda/device_test.h"

namespace gauntlet::kernels::cuda::inline routing {
namespace {

constexpr float kEpsilon = 1e-5f;
constexpr std::int64_t kNormedPadding = 8;

std::vector<float> random_floats(std::size_t count, std::uint64_t seed, float size = 1) {
  const Random random(seed);
  std::vector<float> values(count);
  for (std::size_t i = 0; i < count; ++i) values[i] = random.uniform(-size, size, i);
  return values;
}

std::size_t size_of(std::int64_t count) { return static_cast<std::size_t>(count); }

/// Tokens and a router for them.
struct Scenario {
  std::int64_t tokens = 1;
  std::int64_t hidden = 320;
  int experts = 32;
  int per_token = 4;
  std::int64_t real = tokens;
  std::vector<float> x = random_floats(size_of(tokens * hidden), 11, 2);
  std::vector<float> norm_weight = random_floats(size_of(hidden), 12);
  std::vector<float> bias = random_floats(size_of(experts), 14);
  std::vector<std::uint16_t> weight = [this] {
    std::vector<std::uint16_t> halves;
    for (const float value : random_floats(size_of(experts * hidden), 13)) {
      halves.push_back(bf16_bits(value));
    }
    return halves;
  }();

  Scenario only(std::int64_t first, std::int64_t count) const {
    Scenario part = *this;
    part.x.assign(x.begin() + first * hidden, x.begin() + (first + count) * hidden);
    part.tokens = part.real = count;
    return part;
  }
  double scale(std::int64_t token) const {
    double squares = 0;
    for (std::int64_t i = 0; i < hidden; ++i)
      squares += std::pow(x[size_of(token * hidden + i)], 2);
    return 1 / std::sqrt(squares / static_cast<double>(hidden) + double{kEpsilon});
  }
  std::vector<double> logits(std::int64_t token) const {
    std::vector<double> normed;
    const double scaled = scale(token);
    for (std::int64_t i = 0; i < hidden; ++i) {
      normed.push_back(x[size_of(token * hidden + i)] * scaled * norm_weight[size_of(i)]);
    }
    std::vector<double> sums;
    for (std::int64_t e = 0; e < experts; ++e) {
      double sum = bias[size_of(e)];
      for (std::int64_t i = 0; i < hidden; ++i) {
        sum += normed[size_of(i)] * double{bf16_float(weight[size_of(e * hidden + i)])};
      }
      sums.push_back(sum);
    }
    return sums;
  }
};

enum class Launches { one, two };  // route_and_dispatch(), or route() and dispatch()

struct Routed {
  std::vector<std::uint16_t> normed;
  std::vector<std::int32_t> chosen, first_slot, slot_token, slot_row;
  std::vector<float> weights, slot_weight;
};

Routed run(const Scenario& given, Launches launches) {
  const std::int64_t stride = given.hidden + kNormedPadding;
  const auto picks = size_of(given.tokens * given.per_token);
  const OnDevice<float> x(given.x), norm_weight(given.norm_weight), bias(given.bias);
  const OnDevice<std::uint16_t> weight(given.weight), normed(size_of(given.tokens * stride));
  const OnDevice<std::int32_t> chosen(picks), slot_token(picks), slot_row(picks),
      first_slot(size_of(given.experts) + 1), finished(1),
      real_tokens(std::vector<std::int32_t>{static_cast<std::int32_t>(given.real)});
  const OnDevice<float> weights(picks), slot_weight(picks);
  const Router router{.x = x.get(),
                      .norm_weight = norm_weight.get(),
                      .epsilon = kEpsilon,
                      .weight = as_bf16(weight),
                      .bias = bias.get(),
                      .hidden = given.hidden,
                      .num_tokens = given.tokens,
                      .real_tokens = real_tokens.get(),
                      .num_experts = given.experts,
                      .experts_per_token = given.per_token,
                      .normed = as_bf16_out(normed),
                      .normed_stride = stride,
                      .chosen = chosen.get(),
                      .weights = weights.get()};
  const Dispatch dispatched{.chosen = chosen.get(),
                            .weights = weights.get(),
                            .num_tokens = given.tokens,
                            .num_experts = given.experts,
                            .experts_per_token = given.per_token,
                            .first_slot = first_slot.get(),
                            .slot_token = slot_token.get(),
                            .slot_row = slot_row.get(),
                            .slot_weight = slot_weight.get()};
  if (launches == Launches::one) {
    route_and_dispatch(router, dispatched, finished.get(), {});
    EXPECT_EQ(finished.values()[0], 0);
  } else {
    route(router, {});
    dispatch(dispatched, {});
  }
  return {.normed = normed.values(),
          .chosen = chosen.values(),
          .first_slot = first_slot.values(),
          .slot_token = slot_token.values(),
          .slot_row = slot_row.values(),
          .weights = weights.values(),
          .slot_weight = slot_weight.values()};
}

void expect_normed(const Scenario& given, const Routed& got) {
  const std::int64_t stride = given.hidden + kNormedPadding;
  for (std::int64_t t = 0; t < given.tokens; ++t) {
    const double scale = given.scale(t);
    for (std::int64_t i = 0; i < given.hidden; ++i) {
      const double wanted =
          given.x[size_of(t * given.hidden + i)] * scale * given.norm_weight[size_of(i)];
      ASSERT_NEAR(bf16_float(got.normed[size_of(t * stride + i)]), wanted,
                  1e-5 + std::abs(wanted) / 250);
    }
    ASSERT_EQ(got.normed[size_of(t * stride + given.hidden)], 0) << "the padding was written";
  }
}

/// Against float64; where two experts are as good within rounding, either will do.
void expect_chosen(const Scenario& given, const Routed& got) {
  for (std::int64_t t = 0; t < given.tokens; ++t) {
    const auto logits = given.logits(t);
    auto best = logits;
    std::ranges::sort(best, std::greater());
    double total = 0;
    for (int r = 0; r < given.per_token; ++r) total += std::exp(best[size_of(r)] - best[0]);
    std::set<std::int32_t> experts;
    for (int r = 0; r < given.per_token; ++r) {
      const auto at = size_of(t * given.per_token + r);
      if (t >= given.real) {
        ASSERT_EQ(got.chosen[at], -1);
        continue;
      }
      ASSERT_GE(got.chosen[at], 0);
      ASSERT_LT(got.chosen[at], given.experts);
      ASSERT_TRUE(experts.insert(got.chosen[at]).second) << "an expert was chosen twice";
      ASSERT_NEAR(logits[size_of(got.chosen[at])], best[size_of(r)],
                  1e-5 * (10 + std::abs(best[size_of(r)])));
      ASSERT_NEAR(got.weights[at], std::exp(best[size_of(r)] - best[0]) / total, 2e-4);
    }
  }
}

void expect_dispatched(const Scenario& given, const Routed& got) {
  std::vector<std::int32_t> order;
  for (std::size_t pick = 0; pick < got.chosen.size(); ++pick) {
    if (got.chosen[pick] >= 0) order.push_back(static_cast<std::int32_t>(pick));
  }
  std::ranges::stable_sort(order, {}, [&](std::int32_t pick) { return got.chosen[size_of(pick)]; });
  for (std::size_t slot = 0; slot < order.size(); ++slot) {
    ASSERT_EQ(got.slot_row[slot], order[slot]);
    ASSERT_EQ(got.slot_token[slot], order[slot] / given.per_token);
    ASSERT_EQ(got.slot_weight[slot], got.weights[size_of(order[slot])]);
  }
  for (int e = 0; e <= given.experts; ++e) {
    ASSERT_EQ(got.first_slot[size_of(e)], std::ranges::count_if(got.chosen, [&](int chosen) {
                return chosen >= 0 && chosen < e;
              }));
  }
}

void expect_routed(const Scenario& given) {
  SCOPED_TRACE(::testing::Message() << given.tokens << " tokens of " << given.hidden << ", "
                                    << given.per_token << " of " << given.experts << " experts");
  for (const Launches launches : {Launches::one, Launches::two}) {
    if (launches == Launches::one && given.tokens > kMostDispatchTokens) continue;
    const Routed got = run(given, launches);
    expect_normed(given, got);
    expect_chosen(given, got);
    expect_dispatched(given, got);
  }
}

TEST(RouterOnGpu, chooses_and_dispatches_as_defined) {
  GAUNTLET_NEEDS_GPU();
  expect_routed({.tokens = 1});
  expect_routed({.tokens = 8});
  expect_routed({.tokens = 9});
  expect_routed({.tokens = 24, .real = 19});
  expect_routed({.tokens = 5, .real = 0});
  expect_routed({.tokens = 256, .experts = 128});
  expect_routed({.tokens = 1000});
  expect_routed({.tokens = 2049, .real = 2041});
  expect_routed({.tokens = 300, .experts = 4});
  expect_routed({.tokens = 70, .experts = 33, .per_token = 1});
  expect_routed({.tokens = 256, .per_token = 8});
  expect_routed({.tokens = 8, .experts = 128, .per_token = 8});
  expect_routed({.tokens = 3, .experts = 1, .per_token = 1});
}

TEST(RouterOnGpu, takes_rows_of_any_width) {
  GAUNTLET_NEEDS_GPU();
  for (const std::int64_t hidden : {8, 40, 2880, 3072, 3080, 8192}) {
    expect_routed({.tokens = 1, .hidden = hidden});
    expect_routed({.tokens = 13, .hidden = hidden, .experts = 128});
    expect_routed({.tokens = 400, .hidden = hidden, .experts = 20});
  }
}

/// One kernel for few tokens, another for many: neither may change a token's bits.
TEST(RouterOnGpu, a_token_has_the_same_bits_in_any_company) {
  GAUNTLET_NEEDS_GPU();
  for (const int experts : {32, 128}) {
    const Scenario all{.tokens = 700, .hidden = 2880, .experts = experts};
    const Routed wanted = run(all, Launches::two);
    for (const std::int64_t count : {1, 3, 64, 256}) {
      for (const std::int64_t first : {std::int64_t{0}, std::int64_t{101}, all.tokens - count}) {
        const Routed got = run(all.only(first, count), Launches::one);
        const auto same = [&](const auto& part, const auto& whole) {
          const auto per_token = static_cast<std::ptrdiff_t>(part.size()) / count;
          return std::equal(part.begin(), part.end(), whole.begin() + first * per_token);
        };
        EXPECT_TRUE(same(got.chosen, wanted.chosen)) << count << " tokens from " << first;
        EXPECT_TRUE(same(got.weights, wanted.weights)) << count << " tokens from " << first;
        EXPECT_TRUE(same(got.normed, wanted.normed)) << count << " tokens from " << first;
      }
    }
  }
}

TEST(RouterOnGpu, the_lower_expert_wins_a_tie) {
  GAUNTLET_NEEDS_GPU();
  for (const int experts : {32, 128}) {
    Scenario given{.tokens = 10, .experts = experts};
    std::ranges::fill(given.weight, bf16_bits(0));
    std::ranges::fill(given.bias, -1.0f);
    given.bias[size_of(experts - 1)] = 2;
    for (const Launches launches : {Launches::one, Launches::two}) {
      const Routed got = run(given, launches);
      for (std::int64_t t = 0; t < given.tokens; ++t) {
        const std::vector<std::int32_t> chosen(got.chosen.begin() + 4 * t,
                                               got.chosen.begin() + 4 * t + 4);
        EXPECT_EQ(chosen, (std::vector<std::int32_t>{experts - 1, 0, 1, 2}));
      }
      expect_dispatched(given, got);
    }
  }
}

TEST(RouterOnGpu, a_lost_token_has_experts_and_leaves_the_others_alone) {
  GAUNTLET_NEEDS_GPU();
  Scenario given{.tokens = 6};
  const Scenario whole = given;
  given.x[size_of(2 * given.hidden + 7)] = std::numeric_limits<float>::quiet_NaN();
  const Routed got = run(given, Launches::one), wanted = run(whole, Launches::one);
  for (std::size_t i = 0; i < got.chosen.size(); ++i) {
    if (i / 4 == 2) {
      EXPECT_EQ(got.chosen[i], static_cast<int>(i % 4));
    } else {
      EXPECT_EQ(got.chosen[i], wanted.chosen[i]);
      EXPECT_EQ(got.weights[i], wanted.weights[i]);
    }
  }
}

}  // namespace
}  // namespace gauntlet::kernels::cuda::inline routing
