// The way of sums from tensor memory to C.
#pragma once
#include <cstdint>

#include "catalog/labs/matmul_ladder/bf16_pairs.cuh"
#include "catalog/labs/matmul_ladder_blackwell/lab.h"
#include "ptx/tcgen05.cuh"

namespace gauntlet::labs::matmul_ladder_blackwell::cuda {

/// Four warps store 128 rows of so many columns, each the 32 rows that its number gives it.
__device__ __forceinline__ void store_rows(Bf16* c, int pitch, std::uint32_t sums, int columns) {
  using matmul_ladder::cuda::rounded_pair;
  const int warp = static_cast<int>(threadIdx.x) / 32 % 4;
  const int lane = static_cast<int>(threadIdx.x) % 32;
  Bf16* row = c + std::int64_t{32 * warp + lane} * pitch;
  for (int column = 0; column < columns; column += 32) {
    float s[32];
    ptx::tcgen05_load_32(s, ptx::tensor_memory_at(sums, static_cast<std::uint32_t>(32 * warp),
                                                  static_cast<std::uint32_t>(column)));
    ptx::tcgen05_wait_load();
#pragma unroll
    for (int i = 0; i < 32; i += 8) {
      *reinterpret_cast<uint4*>(row + column + i) =
          make_uint4(rounded_pair(s[i], s[i + 1]), rounded_pair(s[i + 2], s[i + 3]),
                     rounded_pair(s[i + 4], s[i + 5]), rounded_pair(s[i + 6], s[i + 7]));
    }
  }
}

}  // namespace gauntlet::labs::matmul_ladder_blackwell::cuda
