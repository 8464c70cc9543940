// Products with many tokens per matrix, on Hopper: weights stream through shared memory into
// registers, where MXFP4 is dequantized, and meet tiles of tokens in the tensor cores.
#pragma once
#include <cuda.h>

#include <array>
#include <cstdint>

#include "kernels/cuda/launch_how.h"
#include "kernels/cuda/product/prefill_tiles.h"
#include "kernels/cuda/product/product.h"

namespace gauntlet::kernels::cuda::inline product {

/// How an activation buffer is described to tile copies, one map per tile width. Made once per
/// buffer; rows past its end read as zeros.
struct PrefillInput {
  std::array<CUtensorMap, kPrefillWidths.size()> maps;
};

struct PrefillBuffer {
  const __nv_bfloat16* x = nullptr;  // [rows, stride]
  std::int64_t rows = 0;
  std::int64_t cols = 0;
  std::int64_t stride = 0;
};

/// (Not returned: gcc remarks on every by-value use of a type so aligned.)
void make_prefill_input(const PrefillBuffer& buffer, PrefillInput& input);

/// True where the current device can run prefill_product().
bool prefill_product_available();

/// `input` describes product.x. bf16 outputs are 16-byte aligned, with strides of whole 16 bytes.
/// A token's result depends on the tile, not on the other tokens.
void prefill_product(const Product& product, const PrefillInput& input, const PrefillTile& tile,
                     const Launch& how);

}  // namespace gauntlet::kernels::cuda::inline product
