// Does each unfused operation do what its definition says, and nothing beside it?
#include "kernels/cuda/rows/unfused.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "kernels/cuda/attention/attention_scenario.h"
#include "kernels/cuda/device_test.h"
#include "kernels/cuda/routing/router.h"
#include "kernels/cuda/rows/rows.h"

namespace gauntlet::kernels::cuda::inline rows {
namespace {

std::vector<float> random_floats(std::size_t count, std::uint64_t seed, float size = 1) {
  const Random random(seed);
  std::vector<float> values(count);
  for (std::size_t i = 0; i < count; ++i) values[i] = random.uniform(-size, size, i);
  return values;
}

TEST(UnfusedOnGpu, a_residual_is_added) {
  GAUNTLET_NEEDS_GPU();
  for (const auto& [tokens, hidden] : {std::pair{1u, 4u}, {3u, 2880u}, {70u, 68u}}) {
    const auto x = random_floats(tokens * hidden, 1), y = random_floats(tokens * hidden, 2);
    const OnDevice<float> device_x(x), device_y(y);
    add_residual({.x = device_x.get(), .y = device_y.get(), .num_tokens = tokens, .hidden = hidden},
                 {});
    const auto got = device_x.values();
    for (std::size_t i = 0; i < x.size(); ++i) ASSERT_EQ(got[i], x[i] + y[i]) << i;
  }
}

TEST(UnfusedOnGpu, a_norm_without_experts_leaves_x_alone) {
  GAUNTLET_NEEDS_GPU();
  const std::size_t tokens = 300, hidden = 2880;
  const auto x = random_floats(tokens * hidden, 1, 3), weight = random_floats(hidden, 2);
  const OnDevice<float> device_x(x), device_weight(weight);
  const OnDevice<std::uint16_t> out(tokens * hidden);
  norm({.x = device_x.get(),
        .weight = device_weight.get(),
        .epsilon = 1e-5f,
        .out = as_bf16_out(out),
        .out_stride = hidden,
        .num_tokens = tokens,
        .hidden = hidden},
       {});
  EXPECT_EQ(device_x.values(), x);
  const auto got = out.values();
  for (std::size_t t = 0; t < tokens; ++t) {
    double squares = 0;
    for (std::size_t i = 0; i < hidden; ++i)
      squares += double{x[t * hidden + i]} * x[t * hidden + i];
    const double scale = 1 / std::sqrt(squares / hidden + 1e-5);
    for (std::size_t i = 0; i < hidden; ++i) {
      const double wanted = x[t * hidden + i] * scale * weight[i];
      ASSERT_NEAR(bf16_float(got[t * hidden + i]), wanted, 1e-5 + std::abs(wanted) / 250);
    }
  }
}

TEST(UnfusedOnGpu, router_logits_are_of_unrounded_norms) {
  GAUNTLET_NEEDS_GPU();
  constexpr std::int64_t kTokens = 3, kHidden = 200;
  constexpr int kExperts = 37;
  const Random random(5);
  std::vector<float> x, bias, norm_weight(kHidden, 1.5f);
  std::vector<std::uint16_t> weight;
  for (std::uint64_t i = 0; i < kTokens * kHidden; ++i) x.push_back(random.uniform(-2, 2, i));
  for (std::uint64_t i = 0; i < kExperts * kHidden; ++i) {
    weight.push_back(bf16_bits(random.uniform(-0.1f, 0.1f, i + 10000)));
  }
  for (std::uint64_t i = 0; i < kExperts; ++i) bias.push_back(random.uniform(-1, 1, i + 90000));
  const OnDevice<float> x_on(x), norm_on(norm_weight), bias_on(bias);
  const OnDevice<float> unrounded(kTokens * kHidden), logits(kTokens * kExperts);
  const OnDevice<std::uint16_t> weight_on(weight), normed(kTokens * kHidden);
  norm({.x = x_on.get(),
        .weight = norm_on.get(),
        .out = as_bf16_out(normed),
        .out_stride = kHidden,
        .unrounded = unrounded.get(),
        .num_tokens = kTokens,
        .hidden = kHidden},
       {});
  router_logits({.x = unrounded.get(),
                 .weight = as_bf16(weight_on),
                 .bias = bias_on.get(),
                 .hidden = kHidden,
                 .num_tokens = kTokens,
                 .num_experts = kExperts,
                 .logits = logits.get()},
                {});
  const auto got = logits.values();
  for (std::int64_t t = 0; t < kTokens; ++t) {
    double squares = 0;
    for (std::int64_t i = 0; i < kHidden; ++i) squares += std::pow(double{x[t * kHidden + i]}, 2);
    const double scale = 1.5 / std::sqrt(squares / kHidden);
    for (int e = 0; e < kExperts; ++e) {
      double wanted = bias[e];
      for (std::int64_t i = 0; i < kHidden; ++i) {
        wanted += x[t * kHidden + i] * scale * bf16_float(weight[e * kHidden + i]);
      }
      EXPECT_NEAR(got[t * kExperts + e], wanted, 1e-5) << "token " << t << ", expert " << e;
    }
  }
}

TEST(UnfusedOnGpu, experts_are_chosen_as_defined) {
  GAUNTLET_NEEDS_GPU();
  const int per_token = 4;
  for (const int num_experts : {4, 32, 128}) {
    const std::size_t tokens = 21, real = 19, stride = 130;
    const auto logits = random_floats(tokens * stride, 5, 4);
    const OnDevice<float> device_logits(logits), weights(tokens * per_token);
    const OnDevice<std::int32_t> chosen(tokens * per_token),
        real_tokens(std::vector<std::int32_t>{static_cast<std::int32_t>(real)});
    choose_experts({.logits = device_logits.get(),
                    .logits_stride = static_cast<std::int64_t>(stride),
                    .num_tokens = static_cast<std::int64_t>(tokens),
                    .real_tokens = real_tokens.get(),
                    .num_experts = num_experts,
                    .experts_per_token = per_token,
                    .chosen = chosen.get(),
                    .weights = weights.get()},
                   {});
    const auto got = chosen.values();
    const auto got_weights = weights.values();
    for (std::size_t t = 0; t < tokens; ++t) {
      std::vector<int> order(static_cast<std::size_t>(num_experts));
      std::iota(order.begin(), order.end(), 0);
      const float* row = logits.data() + t * stride;
      std::ranges::stable_sort(order, [&](int a, int b) { return row[a] > row[b]; });
      double total = 0;
      for (std::size_t r = 0; r < per_token; ++r) total += std::exp(double{row[order[r]]});
      for (std::size_t r = 0; r < per_token; ++r) {
        const std::size_t at = t * per_token + r;
        ASSERT_EQ(got[at], t < real ? order[r] : -1);
        ASSERT_NEAR(got_weights[at], std::exp(double{row[order[r]]}) / total, 1e-5);
      }
    }
  }
}

TEST(UnfusedOnGpu, swiglu_takes_gates_before_ups) {
  GAUNTLET_NEEDS_GPU();
  const std::size_t rows = 9, real = 7;
  for (const std::size_t width : {4u, 2880u}) {
    const std::size_t in_stride = 2 * width + 4, out_stride = width + 8;
    const auto gate_up = random_floats(rows * in_stride, 4, 12);
    const OnDevice<float> device(gate_up);
    const OnDevice<std::uint16_t> out(rows * out_stride);
    const OnDevice<std::int32_t> num_rows(
        std::vector<std::int32_t>{static_cast<std::int32_t>(real)});
    swiglu({.gate_up = device.get(),
            .gate_up_stride = static_cast<std::int64_t>(in_stride),
            .out = as_bf16_out(out),
            .out_stride = static_cast<std::int64_t>(out_stride),
            .width = static_cast<std::int64_t>(width),
            .most_rows = rows,
            .num_rows = num_rows.get(),
            .limit = 7},
           {});
    const auto got = out.values();
    for (std::size_t i = 0; i < got.size(); ++i) {
      const std::size_t row = i / out_stride, col = i % out_stride;
      if (row >= real || col >= width) {
        ASSERT_EQ(got[i], 0) << "written beyond its row or rows";
        continue;
      }
      const double gate = std::min(double{gate_up[row * in_stride + col]}, 7.0);
      const double up = std::clamp(double{gate_up[row * in_stride + width + col]}, -7.0, 7.0);
      const double wanted = (up + 1) * gate / (1 + std::exp(-1.702 * gate));
      ASSERT_NEAR(bf16_float(got[i]), wanted, 1e-5 + std::abs(wanted) / 250);
    }
  }
}

/// Experts' rows by slot, dispatched as dispatch() dispatches them; the last tokens are padding.
/// The experts in front of `first` are another's.
void expect_combined(std::size_t tokens, std::size_t real, std::size_t num_experts,
                     std::int32_t first = 0) {
  const std::size_t per_token = 4, hidden = 68;
  const Random random(8);
  std::vector<std::int32_t> chosen(tokens * per_token, -1);
  for (std::size_t t = 0; t < real; ++t) {
    for (std::size_t r = 0; r < per_token; ++r) {
      chosen[t * per_token + r] = static_cast<std::int32_t>(
          (random.below(num_experts, t) + r * (1 + num_experts / 5)) % num_experts);
    }
  }
  const auto weights = random_floats(chosen.size(), 9);
  std::vector<std::int32_t> first_slot = {0}, slot_token;
  std::vector<std::size_t> slot_of(chosen.size());
  for (std::size_t e = 0; e < num_experts; ++e) {
    for (std::size_t i = 0; i < chosen.size(); ++i) {
      if (chosen[i] != static_cast<std::int32_t>(e)) continue;
      slot_of[i] = slot_token.size();
      slot_token.push_back(static_cast<std::int32_t>(i / per_token));
    }
    first_slot.push_back(static_cast<std::int32_t>(slot_token.size()));
  }
  const auto x = random_floats(tokens * hidden, 10), y = random_floats(chosen.size() * hidden, 11);
  const OnDevice<float> device_x(x), device_y(y), device_weights(weights);
  const OnDevice<std::int32_t> device_chosen(chosen), device_first(first_slot),
      device_token(slot_token);
  weighted_combine({.x = device_x.get(),
                    .y = device_y.get(),
                    .hidden = hidden,
                    .num_tokens = static_cast<std::int64_t>(tokens),
                    .experts_per_token = per_token,
                    .chosen = device_chosen.get(),
                    .weights = device_weights.get(),
                    .first_slot = device_first.get(),
                    .slot_token = device_token.get(),
                    .first_expert = first,
                    .end_expert = static_cast<int>(num_experts)},
                   {});
  const auto got = device_x.values();
  for (std::size_t t = 0; t < tokens; ++t) {
    for (std::size_t i = 0; i < hidden; ++i) {
      double wanted = x[t * hidden + i];
      for (std::size_t r = 0; t < real && r < per_token; ++r) {
        const std::size_t pick = t * per_token + r;
        if (chosen[pick] < first) continue;
        wanted += double{weights[pick]} * y[slot_of[pick] * hidden + i];
      }
      ASSERT_NEAR(got[t * hidden + i], wanted, 1e-5) << "token " << t;
    }
  }
}

TEST(UnfusedOnGpu, experts_are_combined_by_their_weights) {
  GAUNTLET_NEEDS_GPU();
  expect_combined(1, 1, 32);
  expect_combined(24, 19, 32);
  expect_combined(300, 300, 128);
  expect_combined(100, 100, 8);
  expect_combined(24, 19, 32, 16);
  expect_combined(24, 19, 32, 31);
}

/// Three sequences, of which the second's position 64 and on have no page.
struct KvCase {
  static constexpr int kHeads = 40, kKvHeads = 5, kPages = 6, kStride = 3;
  static constexpr std::size_t kWidth = (kHeads + 2 * kKvHeads) * kHeadDim;
  const std::vector<std::int32_t> context = {0, 62, 127}, first_token = {0, 3, 7, 8},
                                  sequence = {0, 0, 0, 1, 1, 1, 1, 2},
                                  table = {4, -1, -1, 2, -1, -1, 0, 5, 1};
  const std::size_t tokens = sequence.size();
  const OnDevice<std::int32_t> device_context{context}, device_first{first_token},
      device_sequence{sequence}, device_table{table};

  AttentionBatch batch() const {
    return {.num_sequences = 3,
            .num_tokens = static_cast<int>(tokens),
            .first_token = device_first.get(),
            .context = device_context.get(),
            .table = device_table.get(),
            .token_sequence = device_sequence.get(),
            .table_stride = kStride,
            .max_query = 4,
            .max_context = 128};
  }
  std::size_t position(std::size_t token) const {
    const auto s = static_cast<std::size_t>(sequence[token]);
    return static_cast<std::size_t>(context[s] + static_cast<int>(token) - first_token[s]);
  }
  int page(std::size_t token) const {
    return table[static_cast<std::size_t>(sequence[token]) * kStride +
                 position(token) / kPageTokens];
  }
};

TEST(UnfusedOnGpu, rope_rotates_q_apart_and_k_in_place) {
  GAUNTLET_NEEDS_GPU();
  const KvCase c;
  const auto qkv = random_floats(c.tokens * c.kWidth, 1, 3);
  const auto factors = random_floats(128 * kHeadDim, 2, 1.3f);
  const OnDevice<float> device_qkv(qkv), device_factors(factors);
  const OnDevice<std::uint16_t> q(c.tokens * c.kHeads * kHeadDim);
  rope({.qkv = device_qkv.get(),
        .qkv_stride = c.kWidth,
        .rope = reinterpret_cast<const float2*>(device_factors.get()),
        .q = as_bf16_out(q),
        .num_heads = c.kHeads,
        .num_kv_heads = c.kKvHeads,
        .batch = c.batch()},
       {});
  const auto got = device_qkv.values();
  const auto got_q = q.values();
  for (std::size_t t = 0; t < c.tokens; ++t) {
    for (std::size_t i = 0; i < c.kWidth; ++i) {
      const std::size_t at = t * c.kWidth + i, head = i / kHeadDim, d = i % kHeadDim;
      const float* pair = factors.data() + c.position(t) * kHeadDim + 2 * (d % 32);
      const double other = d < 32 ? -qkv[at + 32] : qkv[at - 32];
      const double wanted = qkv[at] * double{pair[0]} + other * pair[1];
      if (head < c.kHeads) {
        ASSERT_NEAR(bf16_float(got_q[t * c.kHeads * kHeadDim + i]), wanted,
                    std::abs(wanted) * 0x1p-8 + 1e-5);
      }
      const bool is_k = head >= c.kHeads && head < c.kHeads + c.kKvHeads;
      ASSERT_NEAR(got[at], is_k ? wanted : double{qkv[at]}, is_k ? 1e-5 : 0);
    }
  }
}

void expect_stored(KvFormat format) {
  const KvCase c;
  const bool fp8 = format == KvFormat::fp8;
  auto qkv = random_floats(c.tokens * c.kWidth, 1, 3);
  std::fill_n(qkv.begin() + c.kHeads * kHeadDim, kHeadDim, 0.0f);  // a row without an amax
  const OnDevice<float> device_qkv(qkv);
  const std::size_t rows = std::size_t{c.kPages} * c.kKvHeads * kPageTokens;
  const OnDevice<std::uint8_t> k(std::vector<std::uint8_t>(rows * kHeadDim * 2, kPoison8)),
      v(std::vector<std::uint8_t>(rows * kHeadDim * 2, kPoison8));
  const OnDevice<float> k_scale(std::vector<float>(rows, -1)),
      v_scale(std::vector<float>(rows, -1));
  store_kv({.qkv = device_qkv.get(),
            .qkv_stride = c.kWidth,
            .num_heads = c.kHeads,
            .cache = {.format = format,
                      .k = k.get(),
                      .v = v.get(),
                      .k_scale = k_scale.get(),
                      .v_scale = v_scale.get(),
                      .num_pages = c.kPages,
                      .num_kv_heads = c.kKvHeads},
            .batch = c.batch()},
           {});
  for (const bool is_v : {false, true}) {
    const auto bytes = (is_v ? v : k).values();
    const auto scales = (is_v ? v_scale : k_scale).values();
    std::size_t stored = 0;
    for (std::size_t t = 0; t < c.tokens; ++t) {
      if (c.page(t) < 0) continue;
      for (int head = 0; head < c.kKvHeads; ++head) {
        ++stored;
        const auto row = static_cast<std::size_t>(
            kv_row(c.kKvHeads, c.page(t), head, static_cast<int>(c.position(t) % kPageTokens)));
        const float* wanted =
            qkv.data() + t * c.kWidth +
            static_cast<std::size_t>(c.kHeads + head + (is_v ? c.kKvHeads : 0)) * kHeadDim;
        double amax = 0;
        for (int d = 0; d < kHeadDim; ++d) amax = std::max(amax, std::abs(double{wanted[d]}));
        if (fp8) {
          ASSERT_NEAR(scales[row], amax / 448, amax * 1e-6);
        }
        for (std::size_t d = 0; d < kHeadDim; ++d) {
          const std::size_t at = row * kHeadDim + d;
          if (fp8) {
            ASSERT_NEAR(from_e4m3(bytes[at]) * scales[row], wanted[d],
                        std::abs(wanted[d]) * 0x1p-4 + amax / 448 * 0x1p-10 + 1e-5);
          } else {
            const auto bits = static_cast<std::uint16_t>(bytes[2 * at] | bytes[2 * at + 1] << 8);
            ASSERT_EQ(bits, bf16_bits(wanted[d]));
          }
        }
      }
    }
    const auto touched = std::ranges::count_if(scales, [](float s) { return s != -1; });
    EXPECT_EQ(static_cast<std::size_t>(touched), fp8 ? stored : 0);
    EXPECT_EQ(stored, 6u * c.kKvHeads);
  }
}

TEST(UnfusedOnGpu, keys_and_values_are_stored_in_their_pages) {
  GAUNTLET_NEEDS_GPU();
  expect_stored(KvFormat::bf16);
  expect_stored(KvFormat::fp8);
}

}  // namespace
}  // namespace gauntlet::kernels::cuda::inline rows
