// Blocks of a cluster: their barrier and each other's shared memory (sm_90).
#pragma once
#include <cstdint>

namespace gauntlet::ptx {

/// With cluster_wait(): every thread of every block has come, and what it wrote before, to any
/// block's shared memory, can be read.
__device__ __forceinline__ void cluster_arrive() {
  asm volatile("barrier.cluster.arrive.release.aligned;" ::: "memory");
}

__device__ __forceinline__ void cluster_wait() {
  asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory");
}

/// Where `own`, in this block's shared memory, lies in that of the block of this rank.
template <class T>
__device__ __forceinline__ T* in_block(T* own, int rank) {
  std::uint64_t address;
  asm("mapa.u64 %0, %1, %2;" : "=l"(address) : "l"(own), "r"(rank));
  return reinterpret_cast<T*>(address);
}

}  // namespace gauntlet::ptx
