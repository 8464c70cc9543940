// MXFP4 products of few tokens on Hopper, fed by bulk copies: the same work as skinny_product() in
// fewer instructions.
#pragma once
#include "kernels/cuda/launch_how.h"
#include "kernels/cuda/product.h"

namespace gauntlet::kernels::cuda {

/// True where the kernel can run such a product: the current device has bulk copies, and its shared
/// memory has room for the tokens.
bool stripes_take(const Product& product);

/// `most_columns`: of one matrix; for experts the most that one of them can get. A token's result
/// does not depend on the others.
void stripe_product(const Product& product, std::int64_t most_columns, int num_sms,
                    const Launch& how);

}  // namespace gauntlet::kernels::cuda
