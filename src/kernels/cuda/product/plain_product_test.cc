// Do products with unshuffled weights give what float64 gives, on both units, in every format and
// grouping?
#include "kernels/cuda/product/plain_product.h"

#include "kernels/cuda/product/product_case.h"

namespace gauntlet::kernels::cuda::inline product {
namespace {

constexpr PlainUnit kUnits[] = {PlainUnit::cuda_cores, PlainUnit::tensor_cores};
constexpr PlainColumns kColumns[] = {PlainColumns::one, PlainColumns::sixteen,
                                     PlainColumns::sixty_four};
constexpr WeightFormat kFormats[] = {WeightFormat::bf16, WeightFormat::mxfp4};

/// Experts one after the other, as they would be uploaded.
class PlainOnDevice {
 public:
  explicit PlainOnDevice(const std::vector<HostMatrix>& experts)
      : shape_{.format = experts[0].format, .rows = experts[0].rows, .cols = experts[0].cols},
        data_(joined(experts, shape_)),
        scales_(joined_scales(experts)) {
    shape_.data = data_.get();
    shape_.scales = scales_.get();
  }
  const PlainMatrix& shape() const { return shape_; }

 private:
  static std::vector<std::uint8_t> joined(const std::vector<HostMatrix>& experts,
                                          const PlainMatrix& shape) {
    std::vector<std::uint8_t> all;
    for (const HostMatrix& from : experts) {
      const auto* bytes = shape.format == WeightFormat::bf16
                              ? reinterpret_cast<const std::uint8_t*>(from.halves.data())
                              : from.nibbles.data();
      all.insert(all.end(), bytes, bytes + shape.data_bytes());
    }
    return all;
  }
  static std::vector<std::uint8_t> joined_scales(const std::vector<HostMatrix>& experts) {
    std::vector<std::uint8_t> all;
    for (const HostMatrix& from : experts) {
      all.insert(all.end(), from.scales.begin(), from.scales.end());
    }
    return all;
  }

  PlainMatrix shape_;
  OnDevice<std::uint8_t> data_, scales_;
};

struct Case {
  WeightFormat format;
  std::int64_t rows;
  std::int64_t cols;
  std::vector<int> slots;  // per expert; one entry: a product of so many tokens
  int unfilled = 0;        // slots that nobody got
  int held = 0;            // the first expert that is held, with those behind it
};

/// Columns whose padding is NaN.
std::vector<std::uint16_t> random_columns(std::int64_t columns, std::int64_t cols,
                                          std::int64_t stride) {
  const Random random(7);
  std::vector<std::uint16_t> x(static_cast<std::size_t>(columns * stride), 0x7FC0);
  for (std::int64_t t = 0; t < columns; ++t) {
    for (std::int64_t k = 0; k < cols; ++k) {
      const auto i = static_cast<std::size_t>(t * stride + k);
      x[i] = bf16_bits(random.uniform(-1, 1, i));
    }
  }
  return x;
}

void expect_right(const Case& c) {
  const bool grouped = c.slots.size() > 1;
  std::vector<HostMatrix> experts;
  std::vector<std::int32_t> first_slot = {0};
  for (std::size_t e = 0; e < c.slots.size(); ++e) {
    experts.push_back(random_matrix(c.format, c.rows, c.cols, 100 + e));
    first_slot.push_back(first_slot.back() + c.slots[e]);
  }
  const PlainOnDevice weights(experts);
  const int filled = first_slot.back(), columns = filled + c.unfilled;
  const std::int64_t x_stride = (c.cols + 63) / 64 * 64, out_stride = c.rows + 3;
  const auto x = random_columns(columns, c.cols, x_stride);
  const Random random(9);
  std::vector<float> bias(static_cast<std::size_t>(c.rows) * experts.size());
  for (std::size_t i = 0; i < bias.size(); ++i) bias[i] = random.uniform(-1, 1, i);
  std::vector<std::int32_t> slot_token;
  for (int s = 0; s < columns; ++s) slot_token.push_back((s * 5 + 3) % filled);
  const OnDevice<std::uint16_t> device_x(x);
  const OnDevice<float> device_bias(bias);
  const OnDevice<std::int32_t> device_first(first_slot), device_token(slot_token);

  const auto wanted = [&](std::size_t e, int slot, std::int64_t row) {
    const std::int64_t token = grouped ? slot_token[static_cast<std::size_t>(slot)] : slot;
    double sum = bias[e * static_cast<std::size_t>(c.rows) + static_cast<std::size_t>(row)];
    for (std::int64_t k = 0; k < c.cols; ++k) {
      sum += experts[e].at(row, k) * bf16_float(x[static_cast<std::size_t>(token * x_stride + k)]);
    }
    return sum;
  };
  std::vector<double> reference;  // [filled, rows]
  for (std::size_t e = 0; e < experts.size(); ++e) {
    for (int s = first_slot[e]; s < first_slot[e + 1]; ++s) {
      for (std::int64_t r = 0; r < c.rows; ++r) reference.push_back(wanted(e, s, r));
    }
  }
  for (const PlainUnit unit : kUnits) {
    for (const PlainColumns together : kColumns) {
      const OnDevice<float> out(
          std::vector<float>(static_cast<std::size_t>(columns * out_stride), 0.5f));
      PlainProduct product{.weights = weights.shape(),
                           .x = as_bf16(device_x),
                           .x_stride = x_stride,
                           .num_columns = columns,
                           .bias = device_bias.get(),
                           .out = out.get(),
                           .out_stride = out_stride};
      if (grouped) {
        product.groups = {.num_experts = static_cast<int>(experts.size()) - c.held,
                          .first_slot = device_first.get() + c.held,
                          .slot_token = device_token.get()};
        product.weights.data += c.held * product.weights.data_bytes();
        product.weights.scales += c.held * product.weights.scale_bytes();
        product.bias += c.held * c.rows;
      }
      const auto first = static_cast<std::size_t>(first_slot[static_cast<std::size_t>(c.held)]);
      plain_product(product, unit, together, {});
      const auto got = out.values();
      for (std::size_t i = 0; i < got.size(); ++i) {
        const auto column = i / static_cast<std::size_t>(out_stride);
        const auto row = i % static_cast<std::size_t>(out_stride);
        if (column < first || column >= static_cast<std::size_t>(filled) ||
            row >= static_cast<std::size_t>(c.rows)) {
          ASSERT_EQ(got[i], 0.5f) << "written beyond its rows or slots: " << column << ", " << row;
          continue;
        }
        const double right = reference[column * static_cast<std::size_t>(c.rows) + row];
        ASSERT_NEAR(got[i], right, 2e-3 + std::abs(right) * 1e-4)
            << "unit " << static_cast<int>(unit) << ", " << static_cast<int>(together)
            << " columns together, column " << column << ", row " << row;
      }
    }
  }
}

TEST(PlainProductOnGpu, products_of_one_matrix_match_float64) {
  GAUNTLET_NEEDS_GPU();
  for (const WeightFormat format : kFormats) {
    for (const int tokens : {1, 3, 16, 17, 64, 65, 150}) {
      expect_right({format, 192, 320, {tokens}});
    }
    for (const std::int64_t rows : {1, 32, 65}) expect_right({format, rows, 32, {5}});
    expect_right({format, 128, 2880, {20}});
  }
  expect_right({WeightFormat::bf16, 40, 72, {9}});
}

TEST(PlainProductOnGpu, products_of_experts_match_float64) {
  GAUNTLET_NEEDS_GPU();
  for (const WeightFormat format : kFormats) {
    expect_right({format, 96, 256, {0, 1, 7, 0, 16, 17, 33, 0}});
    expect_right({format, 64, 128, {3, 0, 0, 130}, 11});
    expect_right({format, 72, 2880, {0, 0, 1, 0}, 3});
    expect_right({format, 96, 256, {5, 17, 33, 4}, 2, 1});
    expect_right({format, 96, 256, {5, 17, 0, 4}, 0, 3});
    std::vector<int> many(128, 0);
    many[0] = 2, many[31] = 1, many[32] = 3, many[127] = 2;
    expect_right({format, 16, 64, many});
  }
}

TEST(PlainProductOnGpu, extreme_scales_are_exact) {
  GAUNTLET_NEEDS_GPU();
  for (const int scale : {0, 2, 100, 200}) {
    HostMatrix matrix = random_matrix(WeightFormat::mxfp4, 64, 32, 1);
    std::ranges::fill(matrix.scales, static_cast<std::uint8_t>(scale));
    const PlainOnDevice weights({matrix});
    // One x is not zero, so that out is a column of the matrix; 2^100 keeps the smallest normal.
    std::vector<std::uint16_t> x(64, 0);
    x[5] = bf16_bits(scale < 100 ? 0x1p100f : 1.0f);
    const OnDevice<std::uint16_t> device_x(x);
    for (const PlainUnit unit : kUnits) {
      // The smallest scale makes subnormal bf16, of which tensor cores promise nothing.
      if (scale == 0 && unit == PlainUnit::tensor_cores) continue;
      for (const PlainColumns together : kColumns) {
        const OnDevice<float> out(64);
        plain_product({.weights = weights.shape(),
                       .x = as_bf16(device_x),
                       .x_stride = 64,
                       .num_columns = 1,
                       .out = out.get(),
                       .out_stride = 64},
                      unit, together, {});
        const auto got = out.values();
        for (std::int64_t r = 0; r < 64; ++r) {
          ASSERT_EQ(got[static_cast<std::size_t>(r)], matrix.at(r, 5) * bf16_float(x[5]));
        }
      }
    }
  }
}

TEST(PlainProductOnGpu, a_token_gets_the_same_bits_in_any_company) {
  GAUNTLET_NEEDS_GPU();
  const auto x = random_columns(70, 2880, 2880);
  const OnDevice<std::uint16_t> device_x(x);
  for (const WeightFormat format : kFormats) {
    const PlainOnDevice weights({random_matrix(format, 100, 2880, 3)});
    for (const PlainUnit unit : kUnits) {
      for (const PlainColumns together : kColumns) {
        std::vector<std::vector<float>> firsts;
        for (const int columns : {1, 5, 70}) {
          const OnDevice<float> out(static_cast<std::size_t>(columns) * 100);
          plain_product({.weights = weights.shape(),
                         .x = as_bf16(device_x),
                         .x_stride = 2880,
                         .num_columns = columns,
                         .out = out.get(),
                         .out_stride = 100},
                        unit, together, {});
          firsts.push_back(out.values());
          firsts.back().resize(100);
        }
        EXPECT_EQ(firsts[0], firsts[1]);
        EXPECT_EQ(firsts[0], firsts[2]);
      }
    }
  }
}

TEST(PlainColumns, are_chosen_by_the_average_of_a_matrix) {
  const auto chosen = [](std::int64_t columns, int experts) {
    return choose_plain_columns({.num_columns = columns, .groups = {.num_experts = experts}});
  };
  EXPECT_EQ(chosen(1, 0), PlainColumns::one);
  EXPECT_EQ(chosen(3, 0), PlainColumns::sixteen);
  EXPECT_EQ(chosen(64, 0), PlainColumns::sixty_four);
  EXPECT_EQ(chosen(4, 32), PlainColumns::one);
  EXPECT_EQ(chosen(256, 32), PlainColumns::sixteen);
  EXPECT_EQ(chosen(8192, 32), PlainColumns::sixty_four);
}

}  // namespace
}  // namespace gauntlet::kernels::cuda::inline product
