// Are whole rows embedded, normed, routed and dealt as their definitions say?
#include "kernels/cuda/rows.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "core/random.h"
#include "kernels/cuda/device_test.h"
#include "kernels/cuda/router.h"

namespace gauntlet::kernels::cuda {
namespace {

std::vector<float> random_floats(std::size_t count, std::uint64_t seed, float size = 1) {
  const Random random(seed);
  std::vector<float> values(count);
  for (std::size_t i = 0; i < count; ++i) values[i] = random.uniform(-size, size, i);
  return values;
}

std::vector<std::uint16_t> random_halves(std::size_t count, std::uint64_t seed, float size = 1) {
  std::vector<std::uint16_t> halves;
  for (const float value : random_floats(count, seed, size)) halves.push_back(bf16_bits(value));
  return halves;
}

TEST(RowsOnGpu, embedding_copies_the_rows_of_the_ids) {
  GAUNTLET_NEEDS_GPU();
  const auto table = random_halves(10 * 64, 1);
  const OnDevice<std::uint16_t> device_table(table);
  const OnDevice<std::int32_t> ids(std::vector<std::int32_t>{9, 0, 9});
  const OnDevice<float> x(3 * 64);
  embed({.table = as_bf16(device_table),
         .ids = ids.get(),
         .x = x.get(),
         .num_tokens = 3,
         .hidden = 64},
        {});
  const auto got = x.values();
  for (std::size_t i = 0; i < 64; ++i) {
    EXPECT_EQ(got[i], bf16_float(table[9 * 64 + i]));
    EXPECT_EQ(got[64 + i], bf16_float(table[i]));
  }
}

TEST(RowsOnGpu, norm_adds_the_experts_first) {
  GAUNTLET_NEEDS_GPU();
  for (const std::size_t hidden : {64u, 2880u, 8192u}) {
    const std::size_t tokens = 3;
    const auto x = random_floats(tokens * hidden, 1, 3);
    const auto experts = random_floats(tokens * 4 * hidden, 2);
    const auto weight = random_floats(hidden, 3);
    const OnDevice<float> device_x(x), device_experts(experts), device_weight(weight);
    const OnDevice<std::uint16_t> out(tokens * (hidden + 8));
    norm({.x = device_x.get(),
          .experts = device_experts.get(),
          .num_experts = 4,
          .weight = device_weight.get(),
          .epsilon = 1e-5f,
          .out = as_bf16_out(out),
          .out_stride = static_cast<std::int64_t>(hidden) + 8,
          .num_tokens = static_cast<std::int64_t>(tokens),
          .hidden = static_cast<std::int64_t>(hidden)},
         {});
    const auto sums = device_x.values();
    const auto normed = out.values();
    for (std::size_t t = 0; t < tokens; ++t) {
      double squares = 0;
      for (std::size_t i = 0; i < hidden; ++i) {
        double sum = x[t * hidden + i];
        for (std::size_t e = 0; e < 4; ++e) sum += experts[(t * 4 + e) * hidden + i];
        EXPECT_NEAR(sums[t * hidden + i], sum, 1e-5);
        squares += sum * sum;
      }
      const double scale = 1 / std::sqrt(squares / static_cast<double>(hidden) + 1e-5);
      for (std::size_t i = 0; i < hidden; ++i) {
        const double wanted = sums[t * hidden + i] * scale * weight[i];
        EXPECT_NEAR(bf16_float(normed[t * (hidden + 8) + i]), wanted,
                    1e-5 + std::abs(wanted) / 250);
      }
      EXPECT_EQ(normed[t * (hidden + 8) + hidden], 0) << "the padding was written";
    }
  }
}

/// Routes random tokens; the choice is checked against float64 where it is clear.
void expect_routed(std::int64_t tokens, int num_experts, std::int64_t real) {
  const std::int64_t hidden = 320;
  const int per_token = 4;
  const auto x = random_floats(static_cast<std::size_t>(tokens * hidden), 11, 2);
  const auto norm_weight = random_floats(static_cast<std::size_t>(hidden), 12);
  const auto weight = random_halves(static_cast<std::size_t>(num_experts * hidden), 13);
  const auto bias = random_floats(static_cast<std::size_t>(num_experts), 14);
  const OnDevice<float> device_x(x), device_norm(norm_weight), device_bias(bias);
  const OnDevice<std::uint16_t> device_weight(weight),
      normed(static_cast<std::size_t>(tokens * hidden));
  const auto picks = static_cast<std::size_t>(tokens * per_token);
  const OnDevice<std::int32_t> chosen(picks), slot_token(picks), slot_row(picks),
      first_slot(static_cast<std::size_t>(num_experts) + 1), finished(1),
      real_tokens(std::vector<std::int32_t>{static_cast<std::int32_t>(real)});
  const OnDevice<float> weights(picks), slot_weight(picks);
  const Router router{.x = device_x.get(),
                      .norm_weight = device_norm.get(),
                      .epsilon = 1e-5f,
                      .weight = as_bf16(device_weight),
                      .bias = device_bias.get(),
                      .hidden = hidden,
                      .num_tokens = tokens,
                      .real_tokens = real_tokens.get(),
                      .num_experts = num_experts,
                      .experts_per_token = per_token,
                      .normed = as_bf16_out(normed),
                      .normed_stride = hidden,
                      .chosen = chosen.get(),
                      .weights = weights.get()};
  const Deal dealt{.chosen = chosen.get(),
                   .weights = weights.get(),
                   .num_tokens = tokens,
                   .num_experts = num_experts,
                   .experts_per_token = per_token,
                   .first_slot = first_slot.get(),
                   .slot_token = slot_token.get(),
                   .slot_row = slot_row.get(),
                   .slot_weight = slot_weight.get()};
  if (tokens <= kMostDealtTokens) {
    route_and_deal(router, dealt, finished.get(), {});
    EXPECT_EQ(finished.values()[0], 0);
  } else {
    route(router, {});
    deal(dealt, {});
  }
  const auto got = chosen.values();
  const auto got_weights = weights.values();
  for (std::int64_t t = 0; t < tokens; ++t) {
    double squares = 0;
    for (std::int64_t i = 0; i < hidden; ++i) {
      squares += std::pow(x[static_cast<std::size_t>(t * hidden + i)], 2);
    }
    const double scale = 1 / std::sqrt(squares / static_cast<double>(hidden) + 1e-5);
    std::vector<double> logits;
    for (int e = 0; e < num_experts; ++e) {
      double sum = bias[static_cast<std::size_t>(e)];
      for (std::int64_t i = 0; i < hidden; ++i) {
        sum += x[static_cast<std::size_t>(t * hidden + i)] * scale *
               norm_weight[static_cast<std::size_t>(i)] *
               bf16_float(weight[static_cast<std::size_t>(e * hidden + i)]);
      }
      logits.push_back(sum);
    }
    std::vector<int> order(static_cast<std::size_t>(num_experts));
    std::iota(order.begin(), order.end(), 0);
    std::sort(order.begin(), order.end(), [&](int a, int b) {
      return logits[static_cast<std::size_t>(a)] > logits[static_cast<std::size_t>(b)];
    });
    double total = 0;
    for (int r = 0; r < per_token; ++r)
      total += std::exp(logits[static_cast<std::size_t>(order[static_cast<std::size_t>(r)])]);
    for (int r = 0; r < per_token; ++r) {
      const auto at = static_cast<std::size_t>(t * per_token + r);
      if (t >= real) {
        ASSERT_EQ(got[at], -1);
        continue;
      }
      const double best = logits[static_cast<std::size_t>(order[static_cast<std::size_t>(r)])];
      ASSERT_NEAR(logits[static_cast<std::size_t>(got[at])], best, 1e-4);
      ASSERT_NEAR(got_weights[at], std::exp(best) / total, 1e-4);
    }
  }
  const auto first = first_slot.values(), token = slot_token.values(), row = slot_row.values();
  ASSERT_EQ(first[0], 0);
  ASSERT_EQ(first[static_cast<std::size_t>(num_experts)], real * per_token);
  for (int e = 0; e < num_experts; ++e) {
    int before = -1;
    for (int s = first[static_cast<std::size_t>(e)]; s < first[static_cast<std::size_t>(e) + 1];
         ++s) {
      const auto at = static_cast<std::size_t>(s);
      ASSERT_EQ(got[static_cast<std::size_t>(row[at])], e);
      ASSERT_EQ(token[at], row[at] / per_token);
      ASSERT_GT(token[at], before) << "an expert's slots are in the order of tokens";
      before = token[at];
    }
  }
}

TEST(RouterOnGpu, chooses_and_deals_as_defined) {
  GAUNTLET_NEEDS_GPU();
  expect_routed(1, 32, 1);
  expect_routed(24, 32, 19);
  expect_routed(256, 128, 256);
  expect_routed(1000, 32, 1000);
  expect_routed(300, 4, 300);
}

}  // namespace
}  // namespace gauntlet::kernels::cuda
