// ldmatrix: a warp loads 8x8 matrices of 16-bit elements from shared memory in the order of mma
// operands (sm_75).
#pragma once
#include "ptx/address.cuh"

namespace gauntlet::ptx {

/// Lane 8j + i gives the address of row i (16 bytes) of matrix j. Lane l receives of each matrix
/// elements 2 (l % 4) and the next of row l / 4.
__device__ __forceinline__ void ldmatrix_x4(std::uint32_t (&d)[4], const void* row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(d[0]), "=r"(d[1]), "=r"(d[2]), "=r"(d[3])
               : "r"(shared_address(row))
               : "memory");
}

/// The same, with the 32-bit shared-memory address of the row.
__device__ __forceinline__ void ldmatrix_x4(std::uint32_t (&d)[4], std::uint32_t row_address) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(d[0]), "=r"(d[1]), "=r"(d[2]), "=r"(d[3])
               : "r"(row_address)
               : "memory");
}

/// The same with every matrix transposed: lane l receives rows 2 (l % 4) and the next of column
/// l / 4.
__device__ __forceinline__ void ldmatrix_x4_trans(std::uint32_t (&d)[4], const void* row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(d[0]), "=r"(d[1]), "=r"(d[2]), "=r"(d[3])
               : "r"(shared_address(row))
               : "memory");
}

}  // namespace gauntlet::ptx
