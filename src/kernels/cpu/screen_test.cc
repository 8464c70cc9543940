// That the bytes' product is what it should be, that its bound really bounds, whatever the weights
// and the vector, and that the rows which the bounds leave hold the largest.
#include "kernels/cpu/screen.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <numeric>

#include "core/random.h"
#include "kernels/cpu/kernels.h"
#include "kernels/ref/ops.h"

namespace gauntlet::kernels::cpu {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

std::uint16_t to_half(float value) {
  return static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(value) >> 16);
}
float from_half(std::uint16_t half) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(half) << 16);
}

/// Rows that are exact in bf16, packed as such and as bytes.
struct Screened {
  std::int64_t rows, cols;
  std::vector<float> plain;  // [rows, cols]
  PackedMatrix halves, bytes;
  std::vector<std::uint8_t> half_data, byte_data, scales;
  std::vector<float> residual_norms, norms;
  float largest_norm = 0;

  Screened(std::vector<float> values, std::int64_t num_cols)
      : rows(std::ssize(values) / num_cols), cols(num_cols), plain(std::move(values)) {
    halves = {.format = PackedFormat::bf16, .rows = rows, .cols = cols};
    bytes = {.format = PackedFormat::int8, .rows = rows, .cols = cols};
    half_data.resize(halves.num_groups() * halves.group_bytes());
    byte_data.resize(bytes.num_groups() * bytes.group_bytes());
    scales.resize(bytes.num_groups() * bytes.group_scale_bytes());
    residual_norms.resize(bytes.num_groups() * kGroupRows);
    norms.resize(residual_norms.size());
    std::vector<std::uint16_t> half_row(cols);
    for (std::int64_t r = 0; r < rows; ++r) {
      float* row = plain.data() + r * cols;
      for (std::int64_t c = 0; c < cols; ++c) {
        half_row[c] = to_half(row[c]);
        row[c] = from_half(half_row[c]);
      }
      pack_row_bf16(half_row.data(), cols, row_place(halves, r, half_data.data(), nullptr));
      const ScreenNorms found =
          pack_row_int8(row, cols, row_place(bytes, r, byte_data.data(), scales.data()));
      residual_norms[r] = found.residual;
      norms[r] = found.row;
      largest_norm = std::max(largest_norm, found.row);
    }
    halves.data = half_data.data();
    bytes.data = byte_data.data();
    bytes.scales = scales.data();
  }
  /// What the bytes of a row say.
  std::vector<double> said(std::int64_t r) {
    const RowPlace place = row_place(bytes, r, byte_data.data(), scales.data());
    std::vector<double> values;
    for (std::int64_t c = 0; c < cols; ++c) {
      values.push_back((place.words[c / 4 * place.step + c % 4] - 128) *
                       ref::e8m0_value(place.scales[c / kBlock * place.scale_step]));
    }
    return values;
  }
};

/// Vectors as they are, in bf16 and in two bytes.
struct Queries {
  std::int64_t count, cols;
  std::vector<float> f32;
  std::vector<std::uint16_t> bf16;
  std::vector<std::int8_t> high, low;
  std::vector<float> steps;
  std::vector<std::int32_t> offsets;
  std::vector<ScreenBound> bounds;

  Queries(const KernelTable& kernels, std::vector<float> values, std::int64_t width,
          Precision precision)
      : count(std::ssize(values) / width),
        cols(width),
        f32(std::move(values)),
        // Products by tiles read whole tiles of rows.
        bf16(f32.size() + (kTileTokens - 1) * width),
        high(f32.size()),
        low(f32.size()),
        steps(f32.size() / kBlock),
        offsets(f32.size() / kBlock) {
    kernels.to_bf16(f32.data(), std::ssize(f32), bf16.data());
    for (std::int64_t t = 0; t < count; ++t) {
      const std::vector<float> x = seen(t, precision);
      bounds.push_back(round_to_two_bytes(
          x, {high.data() + t * cols, low.data() + t * cols, steps.data() + t * cols / kBlock,
              offsets.data() + t * cols / kBlock}));
    }
  }
  std::vector<float> seen(std::int64_t t, Precision precision) const {
    std::vector<float> x(f32.begin() + t * cols, f32.begin() + (t + 1) * cols);
    if (precision == Precision::bf16) {
      for (std::int64_t c = 0; c < cols; ++c) x[c] = from_half(bf16[t * cols + c]);
    }
    return x;
  }
  std::vector<double> rounded(std::int64_t t) const {
    std::vector<double> x;
    for (std::int64_t at = t * cols; at < (t + 1) * cols; ++at) {
      x.push_back((high[at] * 128 + low[at]) * static_cast<double>(steps[at / kBlock]));
    }
    return x;
  }
  Activations exact_view() const {
    return {.f32 = f32.data(), .bf16 = bf16.data(), .stride = cols};
  }
  Activations byte_view() const {
    return {.i8 = high.data(),
            .i8_scales = steps.data(),
            .i8_offsets = offsets.data(),
            .stride = cols,
            .i8_low = low.data()};
  }
};

std::vector<float> product(const KernelTable& kernels, const PackedMatrix& weights,
                           Precision precision, const Activations& x, std::int64_t tokens) {
  std::vector<float> out(tokens * weights.num_groups() * kGroupRows, 99.0f);
  kernels.product({.weights = weights,
                   .precision = precision,
                   .group_end = weights.num_groups(),
                   .num_tokens = tokens,
                   .x = x,
                   .out = out.data(),
                   .out_stride = weights.num_groups() * kGroupRows});
  return out;
}

struct Maker {
  Random random;
  float normal() {
    float sum = 0;
    for (int i = 0; i < 6; ++i) sum += random.uniform(-1, 1, random.next());
    return sum * 0.7f;
  }
  std::vector<float> normals(std::int64_t count) {
    std::vector<float> values(count);
    for (float& value : values) value = normal();
    return values;
  }
};

/// Matrices that make it hard to tell the largest product, or to bound it.
std::vector<std::pair<std::string, std::vector<float>>> hard_matrices(std::int64_t rows,
                                                                      std::int64_t cols) {
  Maker maker{Random(71)};
  const auto all = static_cast<std::size_t>(rows * cols);
  std::vector<std::pair<std::string, std::vector<float>>> made;
  made.emplace_back("normal", maker.normals(rows * cols));
  made.emplace_back("zero", std::vector<float>(all));
  std::vector<float> equal(all);
  const std::vector<float> one = maker.normals(cols);
  for (std::size_t i = 0; i < all; ++i) equal[i] = one[i % one.size()];
  made.emplace_back("equal rows", equal);
  // One bf16 ulp up or down in one place of each row.
  std::vector<float> close = equal;
  for (std::int64_t r = 0; r < rows; ++r) {
    float& value = close[r * cols + static_cast<std::int64_t>(maker.random.next_below(cols))];
    value = from_half(static_cast<std::uint16_t>(to_half(value) + (r % 3) - 1));
  }
  made.emplace_back("rows an ulp apart", close);
  std::vector<float> range = maker.normals(rows * cols);
  for (float& value : range) {
    value = std::ldexp(value, static_cast<int>(maker.random.next_below(120)) - 60);
  }
  made.emplace_back("huge range", range);
  std::vector<float> tiny = maker.normals(rows * cols);
  for (float& value : tiny) {
    value = std::ldexp(value, -123 - static_cast<int>(maker.random.next_below(12)));
  }
  made.emplace_back("denormal", tiny);
  std::vector<float> large = maker.normals(rows * cols);
  for (float& value : large) value = std::ldexp(value, 60);
  made.emplace_back("large", large);
  std::vector<float> mixed = maker.normals(rows * cols);
  for (std::int64_t r = 0; r < rows; ++r) {
    const float scale = r % 4 == 0 ? 0 : std::ldexp(1.0f, static_cast<int>(r % 40) - 20);
    for (std::int64_t c = 0; c < cols; ++c) mixed[r * cols + c] *= scale;
  }
  made.emplace_back("rows of many sizes, some zero", mixed);
  // The largest byte that rounding would pass: 127.9 of 128.
  made.emplace_back("just below powers of two", std::vector<float>(all, from_half(0x3F7F)));
  return made;
}

std::vector<std::pair<std::string, std::vector<float>>> hard_vectors(std::int64_t cols) {
  Maker maker{Random(5)};
  std::vector<std::pair<std::string, std::vector<float>>> made;
  made.emplace_back("normal", maker.normals(cols));
  made.emplace_back("zero", std::vector<float>(cols));
  std::vector<float> outliers = maker.normals(cols);
  for (std::int64_t c = 3; c < cols; c += 41) outliers[c] *= 3000;
  made.emplace_back("outliers", outliers);
  std::vector<float> tiny = maker.normals(cols);
  for (float& value : tiny) value = std::ldexp(value, -130);
  made.emplace_back("denormal", tiny);
  std::vector<float> blocks = maker.normals(cols);
  for (std::int64_t c = 0; c < cols; ++c) {
    blocks[c] = std::ldexp(blocks[c], static_cast<int>(c / kBlock % 3) * 45 - 60);
  }
  made.emplace_back("blocks of many sizes", blocks);
  return made;
}

class EveryScreen : public testing::TestWithParam<SimdLevel> {
 protected:
  EveryScreen() { kernels_.begin_work(); }
  ~EveryScreen() override { kernels_.end_work(); }

  /// The largest lower bound; `uppers` gets the largest upper one of each group.
  float bound_all(const Screened& matrix, const ScreenBound& bound, const std::vector<float>& rough,
                  std::vector<float>& uppers) const {
    uppers.resize(matrix.bytes.num_groups());
    return kernels_.bound_rows({.rows = matrix.rows,
                                .values = rough.data(),
                                .residual_norms = matrix.residual_norms.data(),
                                .norms = matrix.norms.data(),
                                .per_residual = bound.per_residual,
                                .per_norm = bound.per_norm,
                                .constant = bound.constant,
                                .group_uppers = uppers.data()});
  }

  const KernelTable& kernels_ = kernels(GetParam());
};

TEST_P(EveryScreen, bytes_are_multiplied_as_the_reference_does) {
  for (const std::int64_t rows : {1, 16, 37, 96, 128}) {
    for (const std::int64_t tokens : {1, 2, 3, 4, 15}) {
      Maker maker{Random(rows + tokens)};
      Screened matrix(maker.normals(rows * 96), 96);
      const Queries x(kernels_, maker.normals(tokens * 96), 96, Precision::f32);
      const auto out = product(kernels_, matrix.bytes, Precision::int8, x.byte_view(), tokens);
      std::vector<double> weights;
      for (std::int64_t r = 0; r < rows; ++r) {
        const auto row = matrix.said(r);
        weights.insert(weights.end(), row.begin(), row.end());
      }
      for (std::int64_t t = 0; t < tokens; ++t) {
        const auto expected = ref::linear(weights, x.rounded(t), std::vector<double>(rows));
        for (std::int64_t r = 0; r < rows; ++r) {
          ASSERT_NEAR(out[t * matrix.bytes.num_groups() * kGroupRows + r], expected[r], 2e-5)
              << rows << " rows, " << tokens << " tokens, row " << r;
        }
      }
    }
  }
}

TEST_P(EveryScreen, bytes_of_any_size_are_summed_without_saturation) {
  Screened matrix(std::vector<float>(16 * 32, 127.0f), 32);
  const Queries x(kernels_, std::vector<float>(32, -127.0f), 32, Precision::f32);
  EXPECT_FLOAT_EQ(product(kernels_, matrix.bytes, Precision::int8, x.byte_view(), 1)[0],
                  -127.0f * 127 * 32);
}

TEST_P(EveryScreen, bounds_hold_and_leave_the_largest_row) {
  constexpr std::int64_t kRows = 70, kCols = 160;
  const auto vectors = hard_vectors(kCols);
  for (const auto& [kind, values] : hard_matrices(kRows, kCols)) {
    const Screened matrix(values, kCols);
    for (const auto& [shape, x] : vectors) {
      for (const Precision precision : {Precision::f32, Precision::bf16}) {
        SCOPED_TRACE(kind + " by " + shape);
        const Queries query(kernels_, x, kCols, precision);
        const ScreenBound& bound = query.bounds[0];
        ASSERT_TRUE(bound.holds(matrix.largest_norm));
        const auto exact = product(kernels_, matrix.halves, precision, query.exact_view(), 1);
        const auto rough = product(kernels_, matrix.bytes, Precision::int8, query.byte_view(), 1);
        const auto seen = query.seen(0, precision);
        for (std::int64_t r = 0; r < kRows; ++r) {
          const double allowed =
              static_cast<double>(bound.per_residual) * matrix.residual_norms[r] +
              static_cast<double>(bound.per_norm) * matrix.norms[r] + bound.constant;
          double judge = 0;
          for (std::int64_t c = 0; c < kCols; ++c) {
            judge += static_cast<double>(matrix.plain[r * kCols + c]) * seen[c];
          }
          ASSERT_LE(std::abs(static_cast<double>(exact[r]) - rough[r]), allowed) << "row " << r;
          ASSERT_LE(std::abs(judge - rough[r]), allowed) << "row " << r;
        }
        std::vector<float> uppers;
        const float lower = bound_all(matrix, query.bounds[0], rough, uppers);
        const std::int64_t largest = kernels_.argmax(exact.data(), kRows);
        ASSERT_LE(lower, exact[largest]);
        ASSERT_GE(uppers[largest / kGroupRows], lower) << "the first of the largest is dropped";
      }
    }
  }
}

TEST_P(EveryScreen, the_first_largest_row_of_many_random_products_is_kept) {
  constexpr std::int64_t kRows = 640, kCols = 64;
  Maker maker{Random(17)};
  std::int64_t kept = 0, all = 0;
  for (int round = 0; round < 40; ++round) {
    std::vector<float> values = maker.normals(kRows * kCols);
    // The same best row twice, in random places.
    const std::vector<float> x = maker.normals(kCols);
    for (int copy = 0; copy < 2; ++copy) {
      const auto row = static_cast<std::int64_t>(maker.random.next_below(kRows));
      for (std::int64_t c = 0; c < kCols; ++c) values[row * kCols + c] = x[c];
    }
    const Screened matrix(values, kCols);
    const Queries query(kernels_, x, kCols, Precision::f32);
    const auto exact = product(kernels_, matrix.halves, Precision::f32, query.exact_view(), 1);
    const auto rough = product(kernels_, matrix.bytes, Precision::int8, query.byte_view(), 1);
    std::vector<float> uppers;
    const float lower = bound_all(matrix, query.bounds[0], rough, uppers);
    const std::int64_t largest = kernels_.argmax(exact.data(), kRows);
    ASSERT_GE(uppers[largest / kGroupRows], lower);
    for (const float upper : uppers) kept += upper >= lower;
    all += std::ssize(uppers);
  }
  EXPECT_LT(kept, all / 10) << "a screen that keeps everything is none";
}

TEST_P(EveryScreen, rows_behind_the_last_do_not_count) {
  std::vector<float> values(32, 1000.0f), norms(32);
  for (int r = 0; r < 18; ++r) values[r] = static_cast<float>(r);
  norms[17] = 2;
  std::vector<float> uppers(2);
  const float lower = kernels_.bound_rows({.rows = 18,
                                           .values = values.data(),
                                           .residual_norms = norms.data(),
                                           .norms = norms.data(),
                                           .per_residual = 1,
                                           .per_norm = 2,
                                           .constant = 0.5f,
                                           .group_uppers = uppers.data()});
  EXPECT_EQ(lower, 15.5f) << "row 16; row 17 is at least 10.5";
  EXPECT_EQ(uppers, (std::vector<float>{15.5f, 23.5f}));
}

std::string level_name(const testing::TestParamInfo<SimdLevel>& info) {
  std::string name(name_of(info.param));
  for (char& c : name) c = c == '-' ? '_' : c;
  return name;
}
INSTANTIATE_TEST_SUITE_P(Cpu, EveryScreen, testing::ValuesIn(available_levels()), level_name);

TEST(Screen, does_not_hold_for_what_is_not_finite_or_may_overflow) {
  const KernelTable& any = kernels(SimdLevel::portable);
  const auto bound_of = [&](float value) {
    std::vector<float> x(64, 1.0f);
    x[40] = value;
    return Queries(any, x, 64, Precision::f32).bounds[0];
  };
  const auto norm_of = [](float value) {
    std::vector<float> w(64, 1.0f);
    w[3] = value;
    return Screened(w, 64).largest_norm;
  };
  EXPECT_TRUE(bound_of(2).holds(norm_of(2)));
  for (const float wrong : {kInfinity, -kInfinity, std::nanf("")}) {
    EXPECT_FALSE(bound_of(wrong).holds(norm_of(2)));
    EXPECT_FALSE(bound_of(2).holds(norm_of(wrong)));
    EXPECT_FALSE(bound_of(0).holds(norm_of(wrong)));
  }
  EXPECT_FALSE(bound_of(1e25f).holds(norm_of(1e25f)));
}

TEST(Screen, norms_are_those_of_the_row_and_of_what_its_bytes_lack) {
  Maker maker{Random(3)};
  Screened matrix(maker.normals(20 * 96), 96);
  for (std::int64_t r = 0; r < 20; ++r) {
    const auto said = matrix.said(r);
    double residual = 0, row = 0, bytes = 0;
    for (std::int64_t c = 0; c < 96; ++c) {
      const double w = matrix.plain[r * 96 + c];
      residual += (w - said[c]) * (w - said[c]);
      row += w * w;
      bytes += said[c] * said[c];
    }
    EXPECT_GE(matrix.residual_norms[r], std::sqrt(residual));
    EXPECT_NEAR(matrix.residual_norms[r], std::sqrt(residual), 1e-6);
    EXPECT_GE(matrix.norms[r], std::sqrt(std::max(row, bytes)));
    EXPECT_NEAR(matrix.norms[r], std::sqrt(row), 0.01 * std::sqrt(row));
    EXPECT_LT(matrix.residual_norms[r], 0.015 * matrix.norms[r]) << "a byte's worth";
  }
}

}  // namespace
}  // namespace gauntlet::kernels::cpu
