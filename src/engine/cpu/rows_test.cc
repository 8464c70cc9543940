// Do rows lie where a product reads them, and is no more rounded than was asked for?
#include "engine/cpu/rows.h"

#include <gtest/gtest.h>

#include <bit>

namespace gauntlet::engine::cpu {
namespace {

using kernels::cpu::kBlock;
using kernels::cpu::kTileTokens;
using kernels::cpu::Precision;

const kernels::cpu::KernelTable& portable() {
  return kernels::cpu::kernels(kernels::cpu::SimdLevel::portable);
}

TEST(Rows, are_padded_with_zeros_to_blocks_and_to_a_tile_of_rows) {
  for (const std::int64_t width : {1, 31, 32, 33, 100}) {
    const Rows rows(3, width);
    EXPECT_EQ(rows.stride() % kBlock, 0);
    EXPECT_GE(rows.stride(), width);
    EXPECT_LT(rows.stride(), width + kBlock);
    const kernels::cpu::Activations last = rows.view(2);
    EXPECT_EQ(last.stride, rows.stride());
    for (std::int64_t i = 0; i < kTileTokens * rows.stride(); ++i) {
      EXPECT_EQ(last.f32[i], 0);
      EXPECT_EQ(last.bf16[i], 0);
      EXPECT_EQ(last.i8[i], 0);
      EXPECT_EQ(last.i8_scales[i / kBlock], 0);
      EXPECT_EQ(last.i8_offsets[i / kBlock], 0);
    }
  }
}

class RoundedRows : public testing::Test {
 protected:
  RoundedRows() {
    for (std::int64_t r = 0; r < 4; ++r) {
      for (std::int64_t c = 0; c < rows_.stride(); ++c) {
        rows_.row(r)[c] = static_cast<float>(r + 1) + static_cast<float>(c) / 1000;
      }
    }
  }
  /// Whether round() was asked for this element below.
  static bool is_rounded(std::int64_t r, std::int64_t c) { return r == 2 && c >= 32 && c < 96; }

  Rows rows_{4, 100};
};

TEST_F(RoundedRows, of_bf16_are_the_nearest_in_the_part_asked_for) {
  rows_.round(portable(), Precision::bf16, 2, 32, 64);
  for (std::int64_t r = 0; r < 4; ++r) {
    for (std::int64_t c = 0; c < rows_.stride(); ++c) {
      const std::uint16_t half = rows_.view(r).bf16[c];
      if (is_rounded(r, c)) {
        const auto value = std::bit_cast<float>(static_cast<std::uint32_t>(half) << 16);
        EXPECT_NEAR(value, rows_.row(r)[c], 4 * 0x1p-9);
      } else {
        EXPECT_EQ(half, 0);
      }
    }
  }
}

TEST_F(RoundedRows, of_int8_have_a_scale_and_an_offset_per_block) {
  rows_.round(portable(), Precision::int8, 2, 32, 64);
  for (std::int64_t r = 0; r < 4; ++r) {
    const kernels::cpu::Activations row = rows_.view(r);
    for (std::int64_t block = 0; block < rows_.stride() / kBlock; ++block) {
      std::int32_t sum = 0;
      for (std::int64_t c = block * kBlock; c < (block + 1) * kBlock; ++c) {
        sum += row.i8[c];
        if (!is_rounded(r, c)) continue;
        EXPECT_NEAR(static_cast<float>(row.i8[c]) * 2 * row.i8_scales[block], rows_.row(r)[c],
                    1.01f * row.i8_scales[block]);
      }
      EXPECT_EQ(row.i8_offsets[block], -12 * sum);
      EXPECT_EQ(row.i8_scales[block] != 0, is_rounded(r, block * kBlock));
    }
  }
}

TEST_F(RoundedRows, of_f32_stay_as_they_are) {
  rows_.round(portable(), Precision::f32, 2, 32, 64);
  EXPECT_EQ(rows_.view(2).bf16[40], 0);
  EXPECT_EQ(rows_.view(2).i8[40], 0);
  EXPECT_EQ(rows_.view(2).f32, rows_.row(2));
}

}  // namespace
}  // namespace gauntlet::engine::cpu
