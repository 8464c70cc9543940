// Blocks of a cluster reach into each other's shared memory and wait for each other (sm_90).
// Elsewhere a block is a cluster of its own.
#pragma once
#include "ptx/address.cuh"

namespace gauntlet::ptx {

/// This block's number in its cluster.
__device__ __forceinline__ int cluster_rank() {
#if __CUDA_ARCH__ >= 900
  std::uint32_t rank;
  asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
  return static_cast<int>(rank);
#else
  return 0;
#endif
}

/// Where the variable at this shared-memory address lies in another block of the cluster.
__device__ __forceinline__ std::uint32_t cluster_address(std::uint32_t address, int rank) {
#if __CUDA_ARCH__ >= 900
  std::uint32_t there;
  asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(there) : "r"(address), "r"(rank));
  return there;
#else
  return address;
#endif
}

/// To an address that cluster_address() gave, a multiple of 8.
__device__ __forceinline__ void store_cluster_8(std::uint32_t address, float2 value) {
#if __CUDA_ARCH__ >= 900
  asm volatile("st.shared::cluster.v2.f32 [%0], {%1, %2};" ::"r"(address), "f"(value.x),
               "f"(value.y)
               : "memory");
#else
  asm volatile("st.shared.v2.f32 [%0], {%1, %2};" ::"r"(address), "f"(value.x), "f"(value.y)
               : "memory");
#endif
}

/// What this thread stored before can be seen by all threads of the cluster after their next
/// cluster_wait(). Arrivals and waits take turns.
__device__ __forceinline__ void cluster_arrive() {
#if __CUDA_ARCH__ >= 900
  asm volatile("barrier.cluster.arrive.release.aligned;" ::: "memory");
#endif
}

/// Waits until all threads of the cluster have arrived.
__device__ __forceinline__ void cluster_wait() {
#if __CUDA_ARCH__ >= 900
  asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory");
#else
  __syncthreads();
#endif
}

}  // namespace gauntlet::ptx
