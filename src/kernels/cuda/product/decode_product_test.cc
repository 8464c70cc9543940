// Do products of few tokens give what float64 gives, in every format, grouping and epilogue?
#include "kernels/cuda/product/decode_product.h"

#include <functional>

#include "kernels/cuda/product/decode_mxfp4_bulk.h"
#include "kernels/cuda/product/product_case.h"

namespace gauntlet::kernels::cuda::inline product {
namespace {

struct Case {
  WeightFormat format;
  std::int64_t rows;
  std::int64_t cols;
  std::vector<int> slots;  // per expert; one entry: a plain product of so many tokens
  Epilogue epilogue;
};

double swiglu_of(double gate, double up) {
  gate = std::min(gate, 7.0);
  up = std::clamp(up, -7.0, 7.0);
  return (up + 1) * gate / (1 + std::exp(-1.702 * gate));
}

void expect_right(const Case& c) {
  const bool grouped = c.slots.size() > 1;
  const RowOrder order = c.epilogue == Epilogue::swiglu_bf16 ? RowOrder::paired : RowOrder::plain;
  std::vector<HostMatrix> experts;
  std::vector<std::int32_t> first_slot = {0};
  for (std::size_t e = 0; e < c.slots.size(); ++e) {
    experts.push_back(random_matrix(c.format, c.rows, c.cols, 100 + e));
    first_slot.push_back(first_slot.back() + c.slots[e]);
  }
  const PackedOnDevice packed(experts, order);
  const int columns = first_slot.back();
  const std::int64_t stride = (c.cols + 63) / 64 * 64;
  const Random random(7);
  std::vector<std::uint16_t> x(static_cast<std::size_t>(columns * stride), 0);
  for (int t = 0; t < columns; ++t) {
    for (std::int64_t k = 0; k < c.cols; ++k) {
      const auto i = static_cast<std::size_t>(t * stride + k);
      x[i] = bf16_bits(random.uniform(-1, 1, i));
    }
  }
  const auto padded = static_cast<std::size_t>(packed.shape().row_blocks() * kBlockRows);
  std::vector<float> bias(padded * experts.size());
  for (std::size_t i = 0; i < bias.size(); ++i) bias[i] = random.uniform(-1, 1, i + 1000000);
  std::vector<std::int32_t> slot_row, slot_token;
  std::vector<float> slot_weight;
  for (int s = 0; s < columns; ++s) {
    slot_row.push_back(columns - 1 - s);
    slot_token.push_back((s * 5 + 3) % columns);
    slot_weight.push_back(random.unit(static_cast<std::uint64_t>(s) + 77));
  }
  const OnDevice<std::uint16_t> device_x(x);
  const OnDevice<float> device_bias(bias), device_weight(slot_weight);
  const OnDevice<std::int32_t> device_first(first_slot), device_row(slot_row),
      device_token(slot_token);
  const bool bf16_out = c.epilogue == Epilogue::swiglu_bf16 || c.epilogue == Epilogue::store_bf16;
  const std::int64_t out_cols = order == RowOrder::paired ? c.rows / 2 : c.rows;
  const auto count = static_cast<std::size_t>(columns * out_cols);
  Product product{.weights = packed.shape(),
                  .x = as_bf16(device_x),
                  .x_stride = stride,
                  .num_columns = columns,
                  .bias = device_bias.get(),
                  .epilogue = c.epilogue,
                  .out_stride = out_cols};
  if (grouped) {
    product.groups = {.num_experts = static_cast<int>(experts.size()),
                      .first_slot = device_first.get(),
                      .slot_token = device_token.get(),
                      .slot_row = device_row.get(),
                      .slot_weight = device_weight.get()};
  }
  struct Cut {
    std::int64_t most_columns;
    int num_sms;
  };
  std::vector<std::function<void()>> ways;
  for (const Cut& cut : {Cut{8, 132}, Cut{16, 132}, Cut{16, 6}, Cut{8, 1}}) {
    ways.emplace_back([&product, cut] {
      decode_product(product, choose_decode_tile(product, cut.most_columns, cut.num_sms), {});
    });
    if (!decode_mxfp4_bulk_takes(product)) continue;
    ways.emplace_back(
        [&product, cut] { decode_mxfp4_bulk(product, cut.most_columns, cut.num_sms, {}); });
  }
  for (const auto& run : ways) {
    const OnDevice<float> out_f32(std::vector<float>(count, 0.5f));
    const OnDevice<std::uint16_t> out_bf16(std::vector<std::uint16_t>(count, 0x7FC0));
    product.out = bf16_out ? static_cast<void*>(out_bf16.get()) : out_f32.get();
    run();
    const auto floats = out_f32.values();
    const auto halves = out_bf16.values();
    for (std::size_t e = 0; e < experts.size(); ++e) {
      for (int s = first_slot[e]; s < first_slot[e + 1]; ++s) {
        const int token = grouped ? slot_token[static_cast<std::size_t>(s)] : s;
        const auto sum = [&](std::int64_t row) {
          double total = 0;
          for (std::int64_t k = 0; k < c.cols; ++k) {
            total +=
                experts[e].at(row, k) * bf16_float(x[static_cast<std::size_t>(token * stride + k)]);
          }
          return total + bias[e * padded + static_cast<std::size_t>(tile_row(order, c.rows, row))];
        };
        for (std::int64_t r = 0; r < out_cols; ++r) {
          double wanted = order == RowOrder::paired ? swiglu_of(sum(r), sum(r + out_cols)) : sum(r);
          std::int64_t out_row = s;
          if (c.epilogue == Epilogue::weighted_f32) {
            wanted *= slot_weight[static_cast<std::size_t>(s)];
            out_row = slot_row[static_cast<std::size_t>(s)];
          }
          if (c.epilogue == Epilogue::add_f32) wanted += 0.5;
          const auto at = static_cast<std::size_t>(out_row * out_cols + r);
          const double got = bf16_out ? bf16_float(halves[at]) : floats[at];
          const double bound =
              bf16_out ? 1e-4 + std::abs(wanted) / 250 : 1e-3 + std::abs(wanted) * 1e-4;
          ASSERT_NEAR(got, wanted, bound) << "expert " << e << " slot " << s << " row " << r;
        }
      }
    }
  }
}

TEST(DecodeProductOnGpu, plain_products_match_float64) {
  GAUNTLET_NEEDS_GPU();
  for (const WeightFormat format : {WeightFormat::bf16, WeightFormat::mxfp4}) {
    for (const int tokens : {1, 3, 8, 9, 16, 40}) {
      expect_right({format, 192, 320, {tokens}, Epilogue::store_f32});
    }
    expect_right({format, 40, 64, {2}, Epilogue::store_bf16});
    expect_right({format, 128, 2880, {5}, Epilogue::add_f32});
    expect_right({format, 2880, 128, {2}, Epilogue::swiglu_bf16});
  }
}

TEST(DecodeProductOnGpu, bf16_products_of_every_cut_match_float64) {
  GAUNTLET_NEEDS_GPU();
  const auto bf16 = WeightFormat::bf16;
  expect_right({bf16, 1072, 2880, {16}, Epilogue::store_bf16});  // parts of 5 and 6 blocks
  expect_right({bf16, 8456, 320, {9}, Epilogue::store_f32});     // several tiles to a block
  expect_right({bf16, 72, 8192, {16}, Epilogue::store_f32});     // one block to an SM
  expect_right({bf16, 88, 256, {33}, Epilogue::store_f32});      // several groups of tokens
}

TEST(DecodeProductOnGpu, products_of_experts_match_float64) {
  GAUNTLET_NEEDS_GPU();
  for (const WeightFormat format : {WeightFormat::bf16, WeightFormat::mxfp4}) {
    expect_right({format, 128, 256, {0, 1, 7, 0, 8, 9, 17, 0}, Epilogue::swiglu_bf16});
    expect_right({format, 64, 128, {3, 0, 0, 33}, Epilogue::weighted_f32});
    expect_right({format, 64, 2880, {0, 0, 1, 0}, Epilogue::store_f32});
    expect_right({format, 64 * 9, 64 * 17, {2, 0, 9, 1}, Epilogue::weighted_f32});
  }
}

using Run = std::function<void(const Product&)>;

/// What the first token of a product of so many gets.
std::vector<float> first_token(const PackedOnDevice& packed, const OnDevice<std::uint16_t>& x,
                               int columns, const Run& run) {
  const std::int64_t rows = packed.shape().rows;
  const OnDevice<float> out(static_cast<std::size_t>(columns * rows));
  run({.weights = packed.shape(),
       .x = as_bf16(x),
       .x_stride = packed.shape().cols,
       .num_columns = columns,
       .out = out.get(),
       .out_stride = rows});
  auto values = out.values();
  values.resize(static_cast<std::size_t>(rows));
  return values;
}

TEST(DecodeProductOnGpu, a_token_gets_the_same_bits_in_any_company) {
  GAUNTLET_NEEDS_GPU();
  struct Matrix {
    WeightFormat format;
    std::int64_t rows;
    std::int64_t cols;
  };
  for (const Matrix& m :
       {Matrix{WeightFormat::mxfp4, 640, 2880}, Matrix{WeightFormat::bf16, 128, 2880},
        Matrix{WeightFormat::bf16, 2880, 4096}, Matrix{WeightFormat::bf16, 8448, 320}}) {
    const PackedOnDevice packed({random_matrix(m.format, m.rows, m.cols, 3)}, RowOrder::plain);
    std::vector<std::uint16_t> x(static_cast<std::size_t>(m.cols * 40));
    const Random random(5);
    for (std::size_t i = 0; i < x.size(); ++i) x[i] = bf16_bits(random.uniform(-1, 1, i));
    const OnDevice<std::uint16_t> device_x(x);
    const auto by_rings = [](int num_sms) {
      return [num_sms](const Product& p) {
        decode_product(p, choose_decode_tile(p, p.num_columns, num_sms), {});
      };
    };
    const auto by_bulk_copies = [](int num_sms) {
      return [num_sms](const Product& p) {
        if (decode_mxfp4_bulk_takes(p)) decode_mxfp4_bulk(p, 8, num_sms, {});
      };
    };
    const auto alone = first_token(packed, device_x, 1, by_rings(132));
    const auto alone_by_bulk_copies = first_token(packed, device_x, 1, by_bulk_copies(132));
    for (const int columns : {1, 5, 8, 13, 16, 40}) {
      for (const int num_sms : {132, 114, 14, 1}) {  // stripes taken whole and shared
        EXPECT_EQ(first_token(packed, device_x, columns, by_rings(num_sms)), alone)
            << columns << " tokens, " << num_sms << " SMs";
        EXPECT_EQ(first_token(packed, device_x, columns, by_bulk_copies(num_sms)),
                  alone_by_bulk_copies)
            << columns << " tokens, " << num_sms << " SMs";
      }
    }
  }
}

}  // namespace
}  // namespace gauntlet::kernels::cuda::inline product
