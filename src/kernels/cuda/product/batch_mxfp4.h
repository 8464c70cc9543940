// MXFP4 products of experts with some tokens each, on Hopper: between the few of
// decode_mxfp4_bulk() and the many of prefill_product().
#pragma once
#include <array>

#include "kernels/cuda/launch_how.h"
#include "kernels/cuda/product/prefill_product.h"
#include "kernels/cuda/product/product.h"

namespace gauntlet::kernels::cuda::inline product {

/// What a block works on at the same time: so many stripes of 64 rows, a warpgroup for each, and a
/// tile of at most so many tokens; an expert with more has several.
struct BatchTile {
  int stripes = 0;
  int most_width = 0;

  friend constexpr bool operator==(const BatchTile&, const BatchTile&) = default;
};
inline constexpr BatchTile kNarrowBatchTile{.stripes = 4, .most_width = 96};
inline constexpr BatchTile kWideBatchTile{.stripes = 3, .most_width = 128};
inline constexpr std::array kBatchTiles{kNarrowBatchTile, kWideBatchTile};

inline constexpr int kMostBatchExperts = 128;

BatchTile choose_batch_tile(std::int64_t num_columns, int num_experts);

/// True where the kernel can run such a product: experts, MXFP4, an epilogue that experts have, a
/// GPU with bulk copies.
bool batch_mxfp4_takes(const Product& product);

/// `input` describes product.x, which is in the order of slots. bf16 outputs are 16-byte aligned,
/// with strides of whole 16 bytes. The host need not know the experts' histogram; a token's result
/// does not depend on the other tokens, and has the bits of prefill_product().
void batch_mxfp4(const Product& product, const PrefillInput& input, const BatchTile& tile,
                 const Launch& how);

}  // namespace gauntlet::kernels::cuda::inline product
