// Products as a first CUDA port writes them: a warp per row for a token or two, tiles through
// shared memory for more. Weights are not shuffled, copies are not overlapped with arithmetic.
#pragma once
#include <algorithm>

#include "kernels/cuda/launch_how.h"
#include "kernels/cuda/product/plain_matrix.h"

namespace gauntlet::kernels::cuda::inline product {

/// What multiplies the tiles: FMA in float, or mma.sync of bf16. A warp per row uses FMA either
/// way.
enum class PlainUnit { cuda_cores, tensor_cores };

/// How many columns share a load of weights.
enum class PlainColumns { one = 1, sixteen = 16, sixty_four = 64 };

/// By the average of a matrix, since the host does not know what an expert gets.
constexpr PlainColumns choose_plain_columns(const PlainProduct& product) {
  const std::int64_t matrices = std::max(1, product.groups.num_experts);
  if (product.num_columns <= 2 * matrices) return PlainColumns::one;
  return product.num_columns <= 16 * matrices ? PlainColumns::sixteen : PlainColumns::sixty_four;
}

/// With a fixed number of shared columns, a result depends on its own column alone.
void plain_product(const PlainProduct& product, PlainUnit unit, PlainColumns columns,
                   const Launch& how);

inline void plain_product(const PlainProduct& product, PlainUnit unit, const Launch& how) {
  plain_product(product, unit, choose_plain_columns(product), how);
}

}  // namespace gauntlet::kernels::cuda::inline product
