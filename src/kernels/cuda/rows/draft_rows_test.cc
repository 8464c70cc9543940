// Do a draft head's row operations do what their definitions say, and nothing beside it?
#include "kernels/cuda/rows/draft_rows.h"

#include <cmath>

#include "core/random.h"
#include "kernels/cuda/device_test.h"
#include "kernels/cuda/sampling/sample.h"

namespace gauntlet::kernels::cuda::inline rows {
namespace {

std::vector<float> some_floats(std::size_t count, std::uint64_t seed) {
  const Random random(seed);
  std::vector<float> values(count);
  for (std::size_t i = 0; i < count; ++i) values[i] = random.uniform(-4, 4, i);
  return values;
}

TEST(DraftRowsOnGpu, a_silu_product_is_of_gates_and_ups_apart) {
  GAUNTLET_NEEDS_GPU();
  for (const auto& [num_rows, width] : {std::pair{1u, 4u}, {3u, 512u}, {7u, 1720u}}) {
    const std::size_t stride = width + 64;
    const auto gate_up = some_floats(num_rows * 2 * width, 1);
    const OnDevice<float> x(gate_up);
    const OnDevice<std::uint16_t> out(num_rows * stride);
    silu_product({.gate_up = x.get(),
                  .out = as_bf16_out(out),
                  .out_stride = static_cast<std::int64_t>(stride),
                  .width = width,
                  .num_rows = num_rows},
                 {});
    const auto got = out.values();
    for (std::size_t r = 0; r < num_rows; ++r) {
      for (std::size_t i = 0; i < stride; ++i) {
        if (i >= width) {
          ASSERT_EQ(got[r * stride + i], 0) << "behind row " << r;
          continue;
        }
        const double gate = gate_up[r * 2 * width + i], up = gate_up[(r * 2 + 1) * width + i];
        const double wanted = gate / (1 + std::exp(-gate)) * up;
        ASSERT_NEAR(bf16_float(got[r * stride + i]), wanted, 1e-6 + std::abs(wanted) / 250);
      }
    }
  }
}

TEST(DraftRowsOnGpu, inputs_are_an_embedding_and_features_each_behind_its_norm) {
  GAUNTLET_NEEDS_GPU();
  for (const std::int64_t hidden : {64, 2880, 8192}) {
    const std::int64_t stride = 2 * hidden + 12;
    const std::vector<std::int32_t> ids = {4, -2, 0};
    std::vector<std::uint16_t> table;
    for (const float value : some_floats(static_cast<std::size_t>(6 * hidden), 5)) {
      table.push_back(bf16_bits(value));
    }
    const auto features = some_floats(static_cast<std::size_t>(3 * hidden), 6);
    const auto weights = some_floats(static_cast<std::size_t>(2 * hidden), 7);
    const OnDevice<std::uint16_t> device_table(table), out(static_cast<std::size_t>(3 * stride));
    const OnDevice<float> device_features(features), device_weights(weights);
    const OnDevice<float> unrounded(static_cast<std::size_t>(3 * hidden));
    const OnDevice<std::int32_t> device_ids(ids);
    const OnDevice<RowChoice> late(std::vector<RowChoice>{{.token = 1}, {.token = 5}});
    join_inputs({.table = as_bf16(device_table),
                 .ids = device_ids.get(),
                 .late = late.get(),
                 .features = device_features.get(),
                 .embedding_weight = device_weights.get(),
                 .feature_weight = device_weights.get() + hidden,
                 .epsilon = 1e-5f,
                 .out = as_bf16_out(out),
                 .out_stride = stride,
                 .unrounded = unrounded.get(),
                 .num_rows = 3,
                 .hidden = hidden},
                {});
    const auto got = out.values();
    const auto exact = unrounded.values();
    for (std::int64_t row = 0; row < 3; ++row) {
      const std::int64_t id = std::vector<std::int64_t>{4, 5, 0}[static_cast<std::size_t>(row)];
      const auto value = [&](std::int64_t i) {
        return i < hidden ? static_cast<double>(bf16_float(table[id * hidden + i]))
                          : static_cast<double>(features[row * hidden + i - hidden]);
      };
      double squares[2] = {};
      for (std::int64_t i = 0; i < 2 * hidden; ++i) squares[i / hidden] += value(i) * value(i);
      for (std::int64_t i = 0; i < stride; ++i) {
        if (i >= 2 * hidden) {
          ASSERT_EQ(got[row * stride + i], 0) << "behind row " << row;
          continue;
        }
        const double scale =
            1 / std::sqrt(squares[i / hidden] / static_cast<double>(hidden) + 1e-5);
        const double wanted = value(i) * scale * weights[i];
        ASSERT_NEAR(bf16_float(got[row * stride + i]), wanted, 1e-5 + std::abs(wanted) / 250)
            << hidden << ", " << row << ", " << i;
        if (i < hidden) continue;
        ASSERT_NEAR(exact[row * hidden + i - hidden], wanted, 1e-4);
      }
    }
  }
}

TEST(DraftRowsOnGpu, residuals_are_joined_row_by_row_behind_a_norm_where_there_is_one) {
  GAUNTLET_NEEDS_GPU();
  constexpr std::int64_t kTokens = 5, kHidden = 260, kStride = 3 * kHidden + 20;
  constexpr int kBoundaries = 3;
  const auto residuals = some_floats(kBoundaries * kTokens * kHidden, 3);
  const auto weight = some_floats(kBoundaries * kHidden, 4);
  const OnDevice<float> from(residuals), device_weight(weight);
  for (const bool has_norm : {false, true}) {
    const OnDevice<std::uint16_t> out(4 * kStride);
    JoinResiduals work{.residuals = from.get(),
                       .tokens = kTokens,
                       .hidden = kHidden,
                       .boundaries = kBoundaries,
                       .weight = has_norm ? device_weight.get() : nullptr,
                       .epsilon = 1e-5f,
                       .out = as_bf16_out(out),
                       .out_stride = kStride,
                       .num_rows = 2};
    work.rows[0] = {.from = 4, .to = 0};
    work.rows[1] = {.from = 1, .to = 3};
    join_residuals(work, {});
    const auto got = out.values();
    for (int r = 0; r < 2; ++r) {
      const auto value = [&](std::int64_t i) {
        return static_cast<double>(
            residuals[(i / kHidden * kTokens + work.rows[r].from) * kHidden + i % kHidden]);
      };
      double squares = 0;
      for (std::int64_t i = 0; i < kBoundaries * kHidden; ++i) squares += value(i) * value(i);
      const double scale = 1 / std::sqrt(squares / (kBoundaries * kHidden) + 1e-5);
      for (std::int64_t i = 0; i < kStride; ++i) {
        const std::uint16_t half = got[work.rows[r].to * kStride + i];
        if (i >= kBoundaries * kHidden) {
          ASSERT_EQ(half, 0) << "behind row " << r;
          continue;
        }
        const double wanted = has_norm ? value(i) * scale * weight[i] : value(i);
        ASSERT_NEAR(bf16_float(half), wanted, 1e-6 + std::abs(wanted) / 250) << r << ", " << i;
        if (!has_norm) {
          ASSERT_EQ(half, bf16_bits(static_cast<float>(wanted)));
        }
      }
    }
    EXPECT_EQ(got[kStride], 0) << "a row was written that nobody named";
  }
}

TEST(DraftRowsOnGpu, kept_rows_replace_those_that_have_a_slot) {
  GAUNTLET_NEEDS_GPU();
  constexpr std::int64_t kStride = 2112;
  std::vector<std::uint16_t> rows(4 * kStride), there(3 * kStride, 7);
  for (std::size_t i = 0; i < rows.size(); ++i) rows[i] = static_cast<std::uint16_t>(i * 31);
  const OnDevice<std::uint16_t> kept(rows), out(there);
  const OnDevice<std::int32_t> slots(std::vector<std::int32_t>{3, -1, 0});
  take_kept({.kept = as_bf16(kept),
             .slots = slots.get(),
             .out = as_bf16_out(out),
             .stride = kStride,
             .num_rows = 3},
            {});
  const auto got = out.values();
  for (std::size_t i = 0; i < kStride; ++i) {
    ASSERT_EQ(got[i], rows[3 * kStride + i]);
    ASSERT_EQ(got[kStride + i], 7);
    ASSERT_EQ(got[2 * kStride + i], rows[i]);
  }
}

TEST(DraftRowsOnGpu, guesses_are_named_for_a_step_and_for_the_host) {
  GAUNTLET_NEEDS_GPU();
  std::vector<RowChoice> choices(300);
  std::vector<std::int32_t> target_ids(64), wanted;
  for (std::size_t i = 0; i < target_ids.size(); ++i) {
    target_ids[i] = static_cast<std::int32_t>(3 * i + 5);
  }
  for (std::size_t i = 0; i < choices.size(); ++i) {
    choices[i].token = static_cast<std::int32_t>(i * 7 % 65) - 1;
    wanted.push_back(target_ids[static_cast<std::size_t>(std::max(choices[i].token, 0))]);
  }
  const OnDevice<RowChoice> from(choices), late(choices.size());
  const OnDevice<std::int32_t> ids(target_ids);
  for (RowChoice* to : {late.get(), static_cast<RowChoice*>(nullptr)}) {
    const OnDevice<std::int32_t> host(choices.size());
    name_guesses({.choices = from.get(),
                  .target_ids = ids.get(),
                  .late = to,
                  .host = host.get(),
                  .num_guesses = std::ssize(choices)},
                 {});
    EXPECT_EQ(host.values(), wanted);
  }
  const auto named = late.values();
  for (std::size_t i = 0; i < named.size(); ++i) ASSERT_EQ(named[i].token, wanted[i]);
}

}  // namespace
}  // namespace gauntlet::kernels::cuda::inline rows
