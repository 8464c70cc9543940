// MXFP4 products of few tokens on Hopper, fed by bulk copies: the same work as decode_product() in
// fewer instructions.
#pragma once
#include "kernels/cuda/launch_how.h"
#include "kernels/cuda/product/product.h"

namespace gauntlet::kernels::cuda::inline product {

/// True where the kernel can run such a product: the current device has bulk copies, and its shared
/// memory has room for the tokens.
bool decode_mxfp4_bulk_takes(const Product& product);

/// True where there is work for all of so many SMs; with less, smaller blocks end sooner.
bool decode_mxfp4_bulk_fills(const Product& product, int num_sms);

/// `most_columns`: of one matrix; for experts the most that one of them is expected to get. While
/// that is at most 8, a token's result does not depend on the others.
void decode_mxfp4_bulk(const Product& product, std::int64_t most_columns, int num_sms,
                       const Launch& how);

}  // namespace gauntlet::kernels::cuda::inline product
