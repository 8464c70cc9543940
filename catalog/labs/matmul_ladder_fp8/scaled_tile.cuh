// What the rungs with wgmma have in common: products of a stage, scaled sums, tensor maps.
#pragma once
#include <cstdint>

#include "catalog/labs/matmul_ladder/warpgroup_tile.cuh"
#include "catalog/labs/matmul_ladder_fp8/lab.h"
#include "core/check.h"
#include "core/cuda/tensor_map.h"
#include "ptx/wgmma_n128.cuh"

namespace gauntlet::labs::matmul_ladder_fp8::cuda {

using matmul_ladder::cuda::kBoxBytes;
using matmul_ladder::cuda::kBoxes;
using matmul_ladder::cuda::kBoxRows;
using matmul_ladder::cuda::kGroupRows;
using matmul_ladder::cuda::RingPlace;
using matmul_ladder::cuda::store_by_copies;
using matmul_ladder::cuda::wait_for;

inline constexpr int kStageDepth = 128;  // bytes, a row of the swizzle, and elements of a scale
static_assert(kStageDepth == kScaled);

/// parts = 64 rows of a stage by 128 columns; does not wait.
__device__ __forceinline__ void start_product(float (&parts)[64], const F8e4m3* a,
                                              const F8e4m3* b) {
  const std::uint64_t of_a = ptx::wgmma_descriptor_128b(a);
  const std::uint64_t of_b = ptx::wgmma_descriptor_128b(b);
#pragma unroll
  for (int step = 0; step < kStageDepth / 32; ++step) {
    // 32 bytes further along K are two units of the descriptor.
    ptx::wgmma_m64n128k32_f8e4m3(parts, of_a + 2 * step, of_b + 2 * step, step > 0);
  }
}

/// The scales of a lane's two rows, lane / 4 and 8 further of its warp's 16, times that of b.
struct RowScales {
  float upper;
  float lower;
};

/// sums += scaled parts.
__device__ __forceinline__ void add_scaled(float (&sums)[64], const float (&parts)[64],
                                           RowScales scales) {
#pragma unroll
  for (int i = 0; i < 64; i += 4) {
    sums[i] += scales.upper * parts[i];
    sums[i + 1] += scales.upper * parts[i + 1];
    sums[i + 2] += scales.lower * parts[i + 2];
    sums[i + 3] += scales.lower * parts[i + 3];
  }
}

/// Boxes of box_rows x 128 elements in the swizzle that wgmma reads.
inline void describe_operand(const F8e4m3* matrix, std::int64_t rows, std::int64_t columns,
                             int box_rows, CUtensorMap& map) {
  const auto encoded = encode_tensor_map({.address = matrix,
                                          .type = DType::f8e4m3,
                                          .rows = rows,
                                          .columns = columns,
                                          .box_rows = box_rows,
                                          .box_columns = kStageDepth,
                                          .swizzle = TileSwizzle::bytes_128},
                                         map);
  if (!encoded) fail(encoded.error().message);
}

}  // namespace gauntlet::labs::matmul_ladder_fp8::cuda
