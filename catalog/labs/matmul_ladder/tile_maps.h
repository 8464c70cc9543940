// Tensor maps of the operands and the result, in the swizzle that wgmma reads.
#pragma once
#include <cstdint>

#include "catalog/labs/matmul_ladder/lab.h"
#include "core/check.h"
#include "core/cuda/tensor_map.h"

namespace gauntlet::labs::matmul_ladder::cuda {

/// Boxes of box_rows x 64 elements, which are 128 bytes wide.
inline void describe(const Bf16* matrix, std::int64_t rows, std::int64_t columns, int box_rows,
                     CUtensorMap& map) {
  const auto encoded = encode_tensor_map({.address = matrix,
                                          .type = DType::bf16,
                                          .rows = rows,
                                          .columns = columns,
                                          .box_rows = box_rows,
                                          .box_columns = 64,
                                          .swizzle = TileSwizzle::bytes_128},
                                         map);
  if (!encoded) fail(encoded.error().message);
}

}  // namespace gauntlet::labs::matmul_ladder::cuda
