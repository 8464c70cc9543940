// What the rungs with wgmma have in common: products of a stage, and the way of the sums to C.
#pragma once
#include <cstdint>

#include "catalog/labs/matmul_ladder/bf16_pairs.cuh"
#include "catalog/labs/matmul_ladder/lab.h"
#include "ptx/bulk_copy.cuh"
#include "ptx/fence.cuh"
#include "ptx/mbarrier.cuh"
#include "ptx/stmatrix.cuh"
#include "ptx/tensor_copy.cuh"
#include "ptx/wgmma.cuh"
#include "ptx/wgmma_n128.cuh"

namespace gauntlet::labs::matmul_ladder::cuda {

inline constexpr int kDepth = 64;      // of a stage, 128 bytes, a row of the swizzle
inline constexpr int kGroupRows = 64;  // of C in one wgmma

__device__ __forceinline__ void wait_for(std::uint64_t& barrier, std::uint32_t parity) {
  while (!ptx::mbarrier_try_wait(barrier, parity)) {
  }
}

/// Where a warp is in the ring: stage after stage, and the parity of its barriers flips each round.
template <int kStages>
struct RingPlace {
  int stage = 0;
  std::uint32_t parity = 0;

  __device__ __forceinline__ void advance() {
    if (++stage < kStages) return;
    stage = 0;
    parity ^= 1;
  }
  /// Past so many stages at once.
  __device__ __forceinline__ void skip(int stages) {
    const int to = stage + stages;
    stage = to % kStages;
    parity ^= static_cast<std::uint32_t>(to / kStages % 2);
  }
};

/// sums += 64 rows of a stage by its columns, 256 or 128; does not wait.
template <int kSums>
__device__ __forceinline__ void start_product(float (&sums)[kSums], const Bf16* a, const Bf16* b,
                                              bool add) {
  const std::uint64_t of_a = ptx::wgmma_descriptor_128b(a);
  const std::uint64_t of_b = ptx::wgmma_descriptor_128b(b);
#pragma unroll
  for (int step = 0; step < kDepth / 16; ++step) {
    // 32 bytes further along K are two units of the descriptor.
    if constexpr (kSums == 128) {
      ptx::wgmma_m64n256k16_bf16(sums, of_a + 2 * step, of_b + 2 * step, add || step > 0);
    } else {
      ptx::wgmma_m64n128k16_bf16(sums, of_a + 2 * step, of_b + 2 * step, add || step > 0);
    }
  }
}

/// Straight to C. A lane's sums: rows lane / 4 and 8 further of its warp's 16, two columns of every
/// eight.
template <int kSums>
__device__ __forceinline__ void store_sums(const float (&sums)[kSums], Bf16* c, int pitch) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const int warp = static_cast<int>(threadIdx.x) / 32 % 4;
  Bf16* upper_row = c + std::int64_t{warp * 16 + lane / 4} * pitch + lane % 4 * 2;
  Bf16* lower_row = upper_row + std::int64_t{8} * pitch;
#pragma unroll
  for (int j = 0; j < kSums / 4; ++j) {
    const float* s = sums + 4 * j;
    *reinterpret_cast<std::uint32_t*>(upper_row + 8 * j) = rounded_pair(s[0], s[1]);
    *reinterpret_cast<std::uint32_t*>(lower_row + 8 * j) = rounded_pair(s[2], s[3]);
  }
}

inline constexpr int kBoxRows = 16;  // of a warp
inline constexpr int kBoxColumns = 64;
inline constexpr int kBoxBytes = kBoxRows * kBoxColumns * 2;

/// A warp's 16 rows of columns kFirst to kFirst + 64, into a box in the swizzle that a tensor copy
/// takes to C.
template <int kFirst, int kSums>
__device__ __forceinline__ void fill_box(const float (&sums)[kSums], unsigned char* box) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  // Matrices 0 to 3 of stmatrix: 8 rows of 8 columns, rows + 8, and both 8 columns further.
  const int row = lane % 16, right = lane / 16;
#pragma unroll
  for (int j = 0; j < kBoxColumns / 8; j += 2) {
    const float* s = sums + kFirst / 2 + 4 * j;
    const std::uint32_t matrices[4] = {rounded_pair(s[0], s[1]), rounded_pair(s[2], s[3]),
                                       rounded_pair(s[4], s[5]), rounded_pair(s[6], s[7])};
    ptx::stmatrix_x4(box + row * 128 + ((j + right) ^ (row % 8)) * 16, matrices);
  }
}

inline constexpr int kBoxes = 2;  // of a warp, on their way to C

/// A warp's 16 rows of 256 columns to C, 64 columns at a time. A box is filled again once the copy
/// before the last has read it; the warp's first lane waits for the last ones before it ends.
__device__ __forceinline__ void store_by_copies(const float (&sums)[128],
                                                unsigned char (&boxes)[kBoxes][kBoxBytes],
                                                const CUtensorMap& c_map, ptx::TileOrigin origin) {
  const bool leads = threadIdx.x % 32 == 0;
  const auto store = [&]<int kBox> {
    unsigned char* box = boxes[kBox % kBoxes];
    if (leads) ptx::bulk_wait_group_read<kBoxes - 1>();
    __syncwarp();
    fill_box<kBox * kBoxColumns>(sums, box);
    ptx::fence_proxy_async_shared();
    __syncwarp();
    if (leads) {
      ptx::tensor_store_2d(c_map, {.column = origin.column + kBox * kBoxColumns, .row = origin.row},
                           box);
      ptx::bulk_commit_group();
    }
  };
  store.template operator()<0>();
  store.template operator()<1>();
  store.template operator()<2>();
  store.template operator()<3>();
}

}  // namespace gauntlet::labs::matmul_ladder::cuda
