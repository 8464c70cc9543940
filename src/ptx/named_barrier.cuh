// bar.sync with a number: some of a block's warps wait for each other (any GPU). __syncthreads() is
// number 0; 1 to 15 are free.
#pragma once

namespace gauntlet::ptx {

/// `threads` of the block arrive at this barrier, a multiple of 32.
__device__ __forceinline__ void named_barrier_sync(int barrier, int threads) {
  asm volatile("bar.sync %0, %1;" ::"r"(barrier), "r"(threads) : "memory");
}

/// Arrives without waiting; counts towards the same number of threads.
__device__ __forceinline__ void named_barrier_arrive(int barrier, int threads) {
  asm volatile("bar.arrive %0, %1;" ::"r"(barrier), "r"(threads) : "memory");
}

}  // namespace gauntlet::ptx
