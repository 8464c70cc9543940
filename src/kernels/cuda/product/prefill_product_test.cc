#include "kernels/cuda/product/prefill_product.h"

#include <cuda_bf16.h>
#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <functional>
#include <numeric>
#include <string>
#include <vector>

#include "core/random.h"
#include "kernels/cuda/device_test.h"

namespace gauntlet::kernels::cuda::inline product {
namespace {

struct Case {
  WeightFormat format = WeightFormat::bf16;
  PrefillTile tile;
  Epilogue epilogue = Epilogue::store_f32;
  std::int64_t rows = 0;
  std::int64_t cols = 0;
  std::vector<int> counts = {};  // of tokens, per expert; one: a plain product
  std::uint64_t x_seed = 1;
  int reseeded_from = 1 << 30;  // tokens from here on have other values
  bool has_bias = true;

  bool plain() const { return counts.size() == 1; }
  int slots() const { return std::accumulate(counts.begin(), counts.end(), 0); }
  std::int64_t x_stride() const { return (cols + 63) / 64 * 64; }
  bool half() const {
    return epilogue == Epilogue::store_bf16 || epilogue == Epilogue::swiglu_bf16;
  }
  std::int64_t features() const { return epilogue == Epilogue::swiglu_bf16 ? rows / 2 : rows; }
  std::int64_t out_stride() const { return (features() + 7) / 8 * 8 + 8; }
  /// weighted_f32 scatters to every other row.
  std::int64_t out_rows() const { return 2 * slots() + 3; }
  std::int64_t out_row(int slot) const {
    return epilogue == Epilogue::weighted_f32 ? 2 * (slots() - 1 - slot) + 1 : slot;
  }
  /// What the output holds before; a bf16 number.
  float poison() const { return epilogue == Epilogue::add_f32 ? 0.75f : -0x1.8p40f; }
  std::string name() const {
    return "format " + std::to_string(static_cast<int>(format)) + ", tile " +
           std::to_string(tile.tokens) + " x " + std::to_string(tile.consumers) + ", epilogue " +
           std::to_string(static_cast<int>(epilogue)) + ", " + std::to_string(rows) + " x " +
           std::to_string(cols) + ", experts " + std::to_string(counts.size()) + ", slots " +
           std::to_string(slots());
  }
};

/// Everything a product reads, as the matrices say and as the device has it.
class Data {
 public:
  explicit Data(const Case& c)
      : shape_{.format = c.format, .rows = c.rows, .cols = c.cols},
        weights(c.counts.size() * static_cast<std::size_t>(c.rows * c.cols)),
        packed(c.counts.size() * static_cast<std::size_t>(shape_.bytes())),
        x(static_cast<std::size_t>(c.slots() * c.x_stride())),
        bias(c.counts.size() * static_cast<std::size_t>(shape_.row_blocks() * kBlockRows)),
        slot_weight(static_cast<std::size_t>(c.slots())) {
    const Random random(7), x_random(c.x_seed), other(c.x_seed + 99);
    for (std::size_t e = 0; e < c.counts.size(); ++e) pack_expert(c, e);
    for (int slot = 0; slot < c.slots(); ++slot) {
      const auto s = static_cast<std::uint64_t>(slot);
      for (std::int64_t col = 0; col < c.cols; ++col) {
        const auto at =
            s * static_cast<std::uint64_t>(c.x_stride() + 1) + static_cast<std::uint64_t>(col);
        x[static_cast<std::size_t>(slot * c.x_stride() + col)] =
            __float2bfloat16((slot >= c.reseeded_from ? other : x_random).uniform(-2, 2, at));
      }
      slot_weight[s] = random.uniform(0, 1, s);
      slot_row.push_back(static_cast<std::int32_t>(c.out_row(slot)));
    }
    for (std::size_t i = 0; i < bias.size(); ++i)
      bias[i] = c.has_bias ? random.uniform(-3, 3, i) : 0;
    for (const int count : c.counts) first_slot.push_back(first_slot.back() + count);
  }

  float weight(const Case& c, std::size_t expert, std::int64_t row, std::int64_t col) const {
    return weights[(expert * static_cast<std::size_t>(c.rows) + static_cast<std::size_t>(row)) *
                       static_cast<std::size_t>(c.cols) +
                   static_cast<std::size_t>(col)];
  }

 private:
  void pack_expert(const Case& c, std::size_t e) {
    static constexpr float kFp4[16] = {0,    0.5,  1,  1.5,  2,  3,  4,  6,
                                       -0.0, -0.5, -1, -1.5, -2, -3, -4, -6};
    const Random random(100 + e);
    std::uint8_t* const to = packed.data() + e * static_cast<std::size_t>(shape_.bytes());
    for (std::int64_t row = 0; row < c.rows; ++row) {
      for (std::int64_t col = 0; col < c.cols; ++col) {
        const auto at = static_cast<std::uint64_t>(row * c.cols + col);
        const FragmentPlace place = fragment_place(row, col, shape_.col_blocks());
        float value = 0;
        if (c.format == WeightFormat::bf16) {
          const __nv_bfloat16 bits = __float2bfloat16(random.uniform(-1, 1, at));
          std::memcpy(to + bf16_offset(place), &bits, 2);
          value = __bfloat162float(bits);
        } else {
          const auto nibble = static_cast<std::uint32_t>(random.below(16, at));
          const auto group = static_cast<std::uint64_t>(row * ((c.cols + 31) / 32) + col / 32);
          const auto scale = static_cast<int>(116 + random.below(12, group + (1u << 30)));
          std::uint32_t word;
          std::memcpy(&word, to + mxfp4_word_offset(place), 4);
          word |= spread_fp4(nibble, place.reg, place.half);
          std::memcpy(to + mxfp4_word_offset(place), &word, 4);
          to[mxfp4_scale_offset(place)] = static_cast<std::uint8_t>(scale + kMxfp4ScaleBias);
          value = std::ldexp(kFp4[nibble], scale - 127);
        }
        weights[(e * static_cast<std::size_t>(c.rows) + static_cast<std::size_t>(row)) *
                    static_cast<std::size_t>(c.cols) +
                static_cast<std::size_t>(col)] = value;
      }
    }
  }

  FragmentMatrix shape_;

 public:
  std::vector<float> weights;  // [experts, rows, cols], rows as packed
  std::vector<std::uint8_t> packed;
  std::vector<__nv_bfloat16> x;
  std::vector<float> bias;
  std::vector<float> slot_weight;
  std::vector<std::int32_t> slot_row;
  std::vector<std::int32_t> first_slot{0};
};

/// The whole output buffer after the product, as float; poison where nothing was written.
std::vector<float> run(const Case& c, const Data& data) {
  const OnDevice packed(data.packed);
  const OnDevice x(data.x);
  const OnDevice bias(data.bias);
  const OnDevice slot_weight(data.slot_weight);
  const OnDevice slot_row(data.slot_row);
  const OnDevice first_slot(data.first_slot);
  const auto size = static_cast<std::size_t>(c.out_rows() * c.out_stride());
  const OnDevice out_float(std::vector<float>(c.half() ? 0 : size, c.poison()));
  const OnDevice out_half(
      std::vector<__nv_bfloat16>(c.half() ? size : 0, __float2bfloat16(c.poison())));
  const Product product{
      .weights = {.format = c.format, .rows = c.rows, .cols = c.cols, .data = packed.get()},
      .x = x.get(),
      .x_stride = c.x_stride(),
      .num_columns = c.slots(),
      .bias = c.has_bias ? bias.get() : nullptr,
      .epilogue = c.epilogue,
      .out = c.half() ? static_cast<void*>(out_half.get()) : out_float.get(),
      .out_stride = c.out_stride(),
      .groups = {.num_experts = c.plain() ? 0 : static_cast<int>(c.counts.size()),
                 .first_slot = c.plain() ? nullptr : first_slot.get(),
                 .slot_row = slot_row.get(),
                 .slot_weight = slot_weight.get()}};
  PrefillInput input;
  make_prefill_input({.x = x.get(), .rows = c.slots(), .cols = c.cols, .stride = c.x_stride()},
                     input);
  prefill_product(product, input, c.tile, {});
  cuda_check(cudaDeviceSynchronize());
  if (!c.half()) return out_float.values();
  std::vector<float> values;
  for (const __nv_bfloat16 v : out_half.values()) values.push_back(__bfloat162float(v));
  return values;
}

struct Sum {
  double value;
  double bound;  // of the error of a float sum
};

Sum sum_of(const Case& c, const Data& data, std::size_t expert, std::int64_t row, int slot) {
  double value = 0, size = 0;
  for (std::int64_t col = 0; col < c.cols; ++col) {
    const double term =
        double{data.weight(c, expert, row, col)} *
        double{__bfloat162float(data.x[static_cast<std::size_t>(slot * c.x_stride() + col)])};
    value += term;
    size += std::abs(term);
  }
  value += data.bias[expert * static_cast<std::size_t>((c.rows + 63) / 64 * 64) +
                     static_cast<std::size_t>(row)];
  return {value, size * 0x1p-16 + std::abs(value) * 0x1p-22 + 1e-6};
}

/// What feature `f` of a slot should be, and how far from it a right answer may lie.
Sum expected(const Case& c, const Data& data, std::size_t expert, std::int64_t f, int slot) {
  if (c.epilogue == Epilogue::swiglu_bf16) {
    const std::int64_t row = f / 8 * 16 + f % 8;
    const Sum gate_sum = sum_of(c, data, expert, row, slot);
    const Sum up_sum = sum_of(c, data, expert, row + 8, slot);
    const double gate = std::min(gate_sum.value, 7.0), up = std::clamp(up_sum.value, -7.0, 7.0);
    const double value = (up + 1) * gate / (1 + std::exp(-1.702 * gate));
    return {value, 16 * (gate_sum.bound + up_sum.bound) + std::abs(value) * 0x1p-8};
  }
  Sum sum = sum_of(c, data, expert, f, slot);
  if (c.epilogue == Epilogue::store_bf16) sum.bound += std::abs(sum.value) * 0x1p-8;
  if (c.epilogue == Epilogue::weighted_f32) {
    sum.value *= double{data.slot_weight[static_cast<std::size_t>(slot)]};
  }
  if (c.epilogue == Epilogue::add_f32) {
    sum.value += double{c.poison()};
  }
  return sum;
}

void check_case(const Case& c, int slot_step = 1) {
  SCOPED_TRACE(c.name());
  const Data data(c);
  const std::vector<float> out = run(c, data);
  std::vector<char> written(static_cast<std::size_t>(c.out_rows()), 0);
  int wrong = 0;
  std::size_t expert = 0;
  for (int slot = 0; slot < c.slots(); ++slot) {
    while (slot >= data.first_slot[expert + 1]) ++expert;
    const auto row = static_cast<std::size_t>(c.out_row(slot));
    written[row] = 1;
    for (std::int64_t f = 0; f < c.out_stride(); ++f) {
      const float got =
          out[row * static_cast<std::size_t>(c.out_stride()) + static_cast<std::size_t>(f)];
      if (f >= c.features()) {
        if (got != c.poison()) ++wrong;
        continue;
      }
      if (slot % slot_step != 0) continue;
      const Sum want = expected(c, data, expert, f, slot);
      if (!(std::abs(double{got} - want.value) <= want.bound) && ++wrong <= 5) {
        ADD_FAILURE() << "slot " << slot << ", feature " << f << ": " << got << " instead of "
                      << want.value << " +- " << want.bound;
      }
    }
  }
  for (std::size_t row = 0; row < written.size(); ++row) {
    for (std::int64_t f = 0; f < c.out_stride() && written[row] == 0; ++f) {
      const float got =
          out[row * static_cast<std::size_t>(c.out_stride()) + static_cast<std::size_t>(f)];
      if (got != c.poison()) ++wrong;
    }
  }
  EXPECT_EQ(wrong, 0);
}

class PrefillProductOnGpu : public testing::Test {
 protected:
  void SetUp() override {
    int devices = 0;
    if (cudaGetDeviceCount(&devices) != cudaSuccess || devices == 0) GTEST_SKIP() << "no GPU";
    if (!prefill_product_available()) GTEST_SKIP() << "the GPU has no wgmma (needs sm_90a)";
  }

  static void for_each_tile(const std::function<void(Case)>& use) {
    for (const auto format : {WeightFormat::bf16, WeightFormat::mxfp4}) {
      for (const PrefillTile& tile : kPrefillTiles) use({.format = format, .tile = tile});
    }
  }
};

constexpr Epilogue kEpilogues[] = {Epilogue::store_f32, Epilogue::store_bf16, Epilogue::add_f32,
                                   Epilogue::swiglu_bf16, Epilogue::weighted_f32};

TEST_F(PrefillProductOnGpu, multiplies_any_number_of_tokens) {
  for_each_tile([](Case c) {
    c.rows = 192;
    for (const std::int64_t cols : {64, 100, 128, 320}) {
      for (const int tokens : {1, 7, 64, 300}) {
        c.cols = cols;
        c.counts = {tokens};
        check_case(c);
      }
    }
  });
}

TEST_F(PrefillProductOnGpu, ends_with_every_epilogue) {
  for_each_tile([](Case c) {
    c.cols = 192;
    for (const Epilogue epilogue : kEpilogues) {
      for (const std::int64_t rows : {32, 200, 320}) {
        c.epilogue = epilogue;
        c.rows = epilogue == Epilogue::swiglu_bf16 ? (rows + 15) / 16 * 16 : rows;
        c.counts = {83};
        check_case(c);
      }
    }
  });
}

TEST_F(PrefillProductOnGpu, does_without_bias) {
  for_each_tile([](Case c) {
    c.rows = 64;
    c.cols = 64;
    c.counts = {20};
    c.has_bias = false;
    check_case(c);
  });
}

TEST_F(PrefillProductOnGpu, multiplies_each_experts_slots) {
  for_each_tile([](Case c) {
    const int n = c.tile.tokens;
    c.rows = 208;
    c.cols = 128;
    c.counts = {0, 1, n - 1, n, n + 1, 3 * n + n / 4, 0, n / 2, 2, 0};
    for (const Epilogue epilogue : kEpilogues) {
      c.epilogue = epilogue;
      check_case(c, n > 64 ? 3 : 1);
    }
    c.counts = {0, 0, 1};
    check_case(c);
  });
}

TEST_F(PrefillProductOnGpu, multiplies_large_matrices) {
  for_each_tile([](Case c) {
    c.rows = 2880;
    c.cols = 2880;
    c.counts = {300};
    check_case(c, 60);
    c.counts = {c.tile.tokens / 2 + 1, 2 * c.tile.tokens + 3};
    c.epilogue = Epilogue::swiglu_bf16;
    check_case(c, 90);
  });
}

TEST_F(PrefillProductOnGpu, repeats_bit_for_bit) {
  for_each_tile([](Case c) {
    SCOPED_TRACE(c.name());
    c.rows = 640;
    c.cols = 1920;
    c.counts = {300};
    const Data data(c);
    const auto first = run(c, data);
    for (int i = 0; i < 3; ++i) EXPECT_EQ(run(c, data), first);
  });
}

TEST_F(PrefillProductOnGpu, gives_a_token_the_same_bits_in_any_company) {
  for_each_tile([](Case c) {
    SCOPED_TRACE(c.name());
    c.rows = 320;
    c.cols = 1920;
    c.counts = {300};
    const auto all = run(c, Data(c));
    Case other = c;
    other.reseeded_from = 5;
    const auto changed = run(other, Data(other));
    Case fewer = c;
    fewer.counts = {5};
    const auto few = run(fewer, Data(fewer));
    for (std::size_t i = 0; i < static_cast<std::size_t>(5 * c.out_stride()); ++i) {
      ASSERT_EQ(changed[i], all[i]) << i;
      ASSERT_EQ(few[i], all[i]) << i;
    }
  });
}

TEST_F(PrefillProductOnGpu, does_nothing_for_no_slots) {
  for_each_tile([](Case c) {
    c.rows = 64;
    c.cols = 64;
    c.counts = {0, 0, 0, 1};
    check_case(c);
  });
}

}  // namespace
}  // namespace gauntlet::kernels::cuda::inline product
