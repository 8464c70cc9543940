// Products with few tokens per matrix, bound by the bandwidth of reading weights once: decode. Runs
// on any GPU from sm_80 on, and with any number of tokens, sixteen at a time.
#pragma once
#include "kernels/cuda/launch_how.h"
#include "kernels/cuda/product/product.h"

namespace gauntlet::kernels::cuda::inline product {

/// How a launch is cut up; made by host code.
struct DecodeTile {
  int token_tiles = 1;  // of 8 tokens, taken together: 1 or 2
  int blocks = 1;       // of the grid
  int teams = 1;        // of warps in a block, for MXFP4
};

/// `most_columns`: of one matrix; for experts the most that one of them can get.
DecodeTile choose_decode_tile(const Product& product, std::int64_t most_columns, int num_sms);

void decode_product(const Product& product, const DecodeTile& tile, const Launch& how);

}  // namespace gauntlet::kernels::cuda::inline product
