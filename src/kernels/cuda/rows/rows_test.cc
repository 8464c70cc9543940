// Are whole rows embedded and normed as their definitions say?
#include "kernels/cuda/rows/rows.h"

#include <cmath>

#include "core/random.h"
#include "kernels/cuda/device_test.h"

namespace gauntlet::kernels::cuda::inline rows {
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
    const OnDevice<float> device_sums(tokens * hidden);
    norm({.x = device_x.get(),
          .experts = device_experts.get(),
          .num_experts = 4,
          .weight = device_weight.get(),
          .epsilon = 1e-5f,
          .out = as_bf16_out(out),
          .out_stride = static_cast<std::int64_t>(hidden) + 8,
          .sums = device_sums.get(),
          .num_tokens = static_cast<std::int64_t>(tokens),
          .hidden = static_cast<std::int64_t>(hidden)},
         {});
    const auto sums = device_x.values();
    EXPECT_EQ(device_sums.values(), sums);
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

}  // namespace
}  // namespace gauntlet::kernels::cuda::inline rows
