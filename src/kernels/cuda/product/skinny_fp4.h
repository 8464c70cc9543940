// The MXFP4 form of skinny_product.h.
#pragma once
#include "kernels/cuda/product/skinny_product.h"

namespace gauntlet::kernels::cuda::inline product {

/// Blocks that fit an SM.
int fp4_blocks_per_sm(int teams);
/// Teams that share a block's tokens.
int choose_fp4_teams(const Product& product);

void skinny_fp4_product(const Product& product, const SkinnyTile& tile, const Launch& how);

}  // namespace gauntlet::kernels::cuda::inline product
