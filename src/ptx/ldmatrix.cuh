// ldmatrix: 8 x 8 tiles of 16-bit elements from shared memory into the operands of mma.sync (sm_75).
#pragma once
#include "ptx/address.cuh"

namespace gauntlet::ptx {

/// Four tiles; lane i gives the address of row i % 8 of tile i / 8, a multiple of 16.
__device__ __forceinline__ void ldmatrix_x4(std::uint32_t (&d)[4], std::uint32_t row_address) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(d[0]), "=r"(d[1]), "=r"(d[2]), "=r"(d[3])
               : "r"(row_address)
               : "memory");
}

}  // namespace gauntlet::ptx
