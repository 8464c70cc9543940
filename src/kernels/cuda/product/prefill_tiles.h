// Which tile a prefill product is cut into.
#pragma once
#include <array>
#include <cstdint>

#include "kernels/cuda/product/fragments.h"

namespace gauntlet::kernels::cuda::inline product {

/// A block's share: 64 * consumers rows by `tokens` columns; each consumer is a warpgroup.
struct PrefillTile {
  int tokens = 0;
  int consumers = 0;

  friend constexpr bool operator==(const PrefillTile&, const PrefillTile&) = default;
};

/// Tokens that one instruction multiplies.
inline constexpr std::array<int, 5> kPrefillWidths{16, 32, 64, 128, 256};

inline constexpr std::array<PrefillTile, 8> kPrefillTiles{
    {{16, 1}, {16, 2}, {32, 1}, {32, 2}, {64, 1}, {64, 2}, {128, 2}, {256, 2}}};

struct PrefillShape {
  WeightFormat format = WeightFormat::bf16;
  std::int64_t rows = 0;
  std::int64_t cols = 0;
  std::int64_t num_columns = 0;  // tokens, or slots of all experts together
  int num_experts = 0;           // 0: a plain product
  int num_sms = 132;
};

/// The tile expected to be fastest.
PrefillTile choose_prefill_tile(const PrefillShape& shape);

}  // namespace gauntlet::kernels::cuda::inline product
