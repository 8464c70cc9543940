// A product whose tokens lie in the order of slots, on the host and on the device, and what it must
// give.
#pragma once
#include <cuda_bf16.h>
#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <numeric>
#include <string>
#include <vector>

#include "core/random.h"
#include "kernels/cuda/device_test.h"
#include "kernels/cuda/product/prefill_product.h"

namespace gauntlet::kernels::cuda::inline product {

struct SlotCase {
  WeightFormat format = WeightFormat::bf16;
  PrefillTile tile;
  /// The kernel; its tile is in the name alone.
  std::function<void(const Product&, const PrefillInput&)> launch;
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
class SlotData {
 public:
  explicit SlotData(const SlotCase& c)
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

  float weight(const SlotCase& c, std::size_t expert, std::int64_t row, std::int64_t col) const {
    return weights[(expert * static_cast<std::size_t>(c.rows) + static_cast<std::size_t>(row)) *
                       static_cast<std::size_t>(c.cols) +
                   static_cast<std::size_t>(col)];
  }

 private:
  void pack_expert(const SlotCase& c, std::size_t e) {
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
inline std::vector<float> run(const SlotCase& c, const SlotData& data) {
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
  c.launch(product, input);
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

inline Sum sum_of(const SlotCase& c, const SlotData& data, std::size_t expert, std::int64_t row,
                  int slot) {
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
inline Sum expected(const SlotCase& c, const SlotData& data, std::size_t expert, std::int64_t f,
                    int slot) {
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

inline void check_case(const SlotCase& c, int slot_step = 1) {
  SCOPED_TRACE(c.name());
  const SlotData data(c);
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

}  // namespace gauntlet::kernels::cuda::inline product
