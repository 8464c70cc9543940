// The MXFP4 form of decode_product.h.
#pragma once
#include "kernels/cuda/product/decode_product.h"

namespace gauntlet::kernels::cuda::inline product {

/// Blocks that fit an SM.
int mxfp4_blocks_per_sm(int teams);
/// Teams that share a block's tokens.
int choose_mxfp4_teams(const Product& product);

void decode_mxfp4_product(const Product& product, const DecodeTile& tile, const Launch& how);

}  // namespace gauntlet::kernels::cuda::inline product
