// stmatrix: a warp stores 8 x 8 matrices of 16-bit elements from the layout of mma results (sm_90).
#pragma once
#include "ptx/address.cuh"

namespace gauntlet::ptx {

/// Two matrices, transposed: lane 8m + i names the 16 bytes of shared memory that take column i of
/// matrix m; the other lanes' addresses are not used.
__device__ __forceinline__ void stmatrix_x2_trans(void* row, std::uint32_t a, std::uint32_t b) {
  asm volatile(
      "stmatrix.sync.aligned.m8n8.x2.trans.shared.b16 [%0], {%1, %2};" ::"r"(shared_address(row)),
      "r"(a), "r"(b)
      : "memory");
}

/// Four matrices, transposed.
__device__ __forceinline__ void stmatrix_x4_trans(void* row, const std::uint32_t (&m)[4]) {
  asm volatile("stmatrix.sync.aligned.m8n8.x4.trans.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(
                   shared_address(row)),
               "r"(m[0]), "r"(m[1]), "r"(m[2]), "r"(m[3])
               : "memory");
}

/// Four matrices: lane 8m + i names the 16 bytes of shared memory that take row i of matrix m. A
/// lane holds elements 2 (lane % 4) and the next of row lane / 4.
__device__ __forceinline__ void stmatrix_x4(void* row, const std::uint32_t (&m)[4]) {
  asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(
                   shared_address(row)),
               "r"(m[0]), "r"(m[1]), "r"(m[2]), "r"(m[3])
               : "memory");
}

}  // namespace gauntlet::ptx
