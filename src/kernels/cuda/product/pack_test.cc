// Do weights land where tensor cores look for them, and are random ones those of the host?
#include "kernels/cuda/product/pack.h"

#include "kernels/cuda/product/product_case.h"

namespace gauntlet::kernels::cuda::inline product {
namespace {

TEST(Fragments, every_element_has_a_place_of_its_own) {
  std::vector<int> seen(2 * kBf16BlockBytes / 2 * 2, 0);
  for (int row = 0; row < 128; ++row) {
    for (int col = 0; col < 64; ++col)
      ++seen[static_cast<std::size_t>(bf16_offset(fragment_place(row, col, 1)) / 2)];
  }
  for (std::size_t i = 0; i < 128 * 64; ++i) EXPECT_EQ(seen[i], 1) << i;
}

TEST(Fragments, eight_values_share_a_word_without_touching) {
  std::uint32_t word = 0;
  for (int reg = 0; reg < 4; ++reg) {
    for (int half = 0; half < 2; ++half) {
      const std::uint32_t bits = spread_fp4(15, reg, half);
      EXPECT_EQ(word & bits, 0u);
      word |= bits;
    }
  }
  EXPECT_EQ(word, 0xFFFFFFFFu);
}

TEST(PackOnGpu, uploaded_rows_land_in_their_places) {
  GAUNTLET_NEEDS_GPU();
  for (const RowOrder order : {RowOrder::plain, RowOrder::paired}) {
    const HostMatrix halves = random_matrix(WeightFormat::bf16, 96, 160, 1);
    const auto packed = PackedOnDevice({halves}, order).bytes();
    const HostMatrix fours = random_matrix(WeightFormat::mxfp4, 96, 160, 2);
    const auto words = PackedOnDevice({fours}, order).bytes();
    for (std::int64_t r = 0; r < 96; ++r) {
      for (std::int64_t c = 0; c < 160; ++c) {
        const FragmentPlace at = fragment_place(tile_row(order, 96, r), c, 3);
        std::uint16_t half;
        std::memcpy(&half, &packed[static_cast<std::size_t>(bf16_offset(at))], 2);
        ASSERT_EQ(half, halves.halves[static_cast<std::size_t>(r * 160 + c)]);
        std::uint32_t word;
        std::memcpy(&word, &words[static_cast<std::size_t>(mxfp4_word_offset(at))], 4);
        const auto index = static_cast<std::size_t>(r * 160 + c);
        const std::uint32_t nibble = fours.nibbles[index / 2] >> (4 * (index % 2)) & 15;
        ASSERT_EQ(word & spread_fp4(15, at.reg, at.half), spread_fp4(nibble, at.reg, at.half));
        ASSERT_EQ(words[static_cast<std::size_t>(mxfp4_scale_offset(at))],
                  fours.scales[index / 32] + kMxfp4ScaleBias);
      }
    }
  }
}

TEST(PackOnGpu, unpacked_rows_are_the_uploaded_ones) {
  GAUNTLET_NEEDS_GPU();
  const HostMatrix fours = random_matrix(WeightFormat::mxfp4, 96, 160, 2);
  const OnDevice<std::uint8_t> nibbles(fours.nibbles), scales(fours.scales);
  Pack work{.source_format = WeightFormat::mxfp4,
            .cols = 160,
            .target = {.format = WeightFormat::mxfp4, .rows = 96, .cols = 160}};
  work.sources[0] = {.rows = 40, .data = nibbles.get(), .scales = scales.get()};
  work.sources[1] = {.rows = 56, .data = nibbles.get() + 40 * 80, .scales = scales.get() + 40 * 5};
  const OnDevice<std::uint8_t> out(fours.nibbles.size()), out_scales(fours.scales.size());
  work.out = out.get();
  unpack(work, out_scales.get(), {});
  EXPECT_EQ(out.values(), fours.nibbles);
  EXPECT_EQ(out_scales.values(), fours.scales);

  const OnDevice<std::uint16_t> halves(96 * 160);
  work.target.format = WeightFormat::bf16;
  work.out = reinterpret_cast<std::uint8_t*>(halves.get());
  unpack(work, nullptr, {});
  const auto made = halves.values();
  for (std::int64_t r = 0; r < 96; ++r) {
    for (std::int64_t c = 0; c < 160; ++c) {
      ASSERT_EQ(bf16_float(made[static_cast<std::size_t>(r * 160 + c)]), fours.at(r, c));
    }
  }
}

TEST(PackOnGpu, random_rows_are_the_same_in_fragments_and_unpacked) {
  GAUNTLET_NEEDS_GPU();
  for (const WeightFormat format : {WeightFormat::bf16, WeightFormat::mxfp4}) {
    Pack work{.source_format = format,
              .cols = 128,
              .random_step = 0x1p-15f,
              .random_scales = {.lower = 120, .upper_of_256 = 77},
              .target = {.format = WeightFormat::bf16, .rows = 64, .cols = 128}};
    work.sources[0] = {.rows = 64, .random_key = 5, .first_random_row = 3};
    const OnDevice<std::uint16_t> packed(64 * 128), rows(64 * 128);
    work.out = reinterpret_cast<std::uint8_t*>(packed.get());
    pack(work, {});
    work.out = reinterpret_cast<std::uint8_t*>(rows.get());
    unpack(work, nullptr, {});
    const auto fragments = packed.values(), plain = rows.values();
    for (std::int64_t r = 0; r < 64; ++r) {
      for (std::int64_t c = 0; c < 128; ++c) {
        ASSERT_EQ(plain[static_cast<std::size_t>(r * 128 + c)],
                  fragments[static_cast<std::size_t>(bf16_offset(fragment_place(r, c, 2)) / 2)]);
      }
    }
  }
}

TEST(PackOnGpu, a_view_of_random_rows_is_a_part_of_the_whole) {
  GAUNTLET_NEEDS_GPU();
  constexpr std::int64_t kRows = 70, kCols = 192, kFirstRow = 5, kFirstCol = 96;
  constexpr std::int64_t kViewRows = 64, kViewCols = 64;
  for (const WeightFormat format : {WeightFormat::bf16, WeightFormat::mxfp4}) {
    const auto made = [&](std::int64_t rows, std::int64_t cols, const RowSource& source) {
      Pack work{.source_format = format,
                .cols = cols,
                .random_step = 0x1p-15f,
                .random_scales = {.lower = 120, .upper_of_256 = 77},
                .target = {.format = WeightFormat::bf16, .rows = rows, .cols = cols}};
      work.sources[0] = source;
      const OnDevice<std::uint16_t> out(static_cast<std::size_t>(rows * cols));
      work.out = reinterpret_cast<std::uint8_t*>(out.get());
      unpack(work, nullptr, {});
      return out.values();
    };
    const auto whole = made(kRows, kCols, {.rows = kRows, .random_key = 5});
    const auto view = made(kViewRows, kViewCols,
                           {.rows = kViewRows,
                            .random_key = 5,
                            .first_random_row = kFirstRow,
                            .first_random_col = kFirstCol,
                            .random_cols = kCols});
    for (std::int64_t r = 0; r < kViewRows; ++r) {
      for (std::int64_t c = 0; c < kViewCols; ++c) {
        const auto at = static_cast<std::size_t>((r + kFirstRow) * kCols + c + kFirstCol);
        ASSERT_EQ(view[static_cast<std::size_t>(r * kViewCols + c)], whole[at]) << r << ", " << c;
      }
    }
  }
}

}  // namespace
}  // namespace gauntlet::kernels::cuda::inline product
