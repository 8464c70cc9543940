// Do a draft head's row operations do what their definitions say, and nothing beside it?
#include "kernels/cuda/rows/draft_rows.h"

#include <cmath>

#include "core/random.h"
#include "kernels/cuda/device_test.h"

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

TEST(DraftRowsOnGpu, rows_are_taken_whole_and_in_any_order) {
  GAUNTLET_NEEDS_GPU();
  constexpr std::int64_t kHidden = 2880;
  const auto x = some_floats(9 * kHidden, 2);
  const std::vector<std::int32_t> wanted = {8, 0, 3, 3};
  const OnDevice<float> from(x), out(wanted.size() * kHidden);
  const OnDevice<std::int32_t> rows(wanted);
  take_rows({.x = from.get(),
             .rows = rows.get(),
             .out = out.get(),
             .num_rows = std::ssize(wanted),
             .hidden = kHidden},
            {});
  const auto got = out.values();
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    for (std::int64_t c = 0; c < kHidden; ++c) {
      ASSERT_EQ(got[i * kHidden + c], x[wanted[i] * kHidden + c]) << i << ", " << c;
    }
  }
}

}  // namespace
}  // namespace gauntlet::kernels::cuda::inline rows
