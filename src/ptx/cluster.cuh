// Clusters: blocks that run at the same time and reach into each other's shared memory (sm_90).
#pragma once
#include "ptx/address.cuh"

namespace gauntlet::ptx {

/// Of this block in its cluster.
__device__ __forceinline__ std::uint32_t cluster_rank() {
  std::uint32_t rank;
  asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
  return rank;
}

__device__ __forceinline__ std::uint32_t cluster_blocks() {
  std::uint32_t blocks;
  asm("mov.u32 %0, %%cluster_nctarank;" : "=r"(blocks));
  return blocks;
}

/// All threads of all blocks arrive, then wait. Orders no memory by itself: fence_mbarrier_init()
/// in front of it publishes barriers.
__device__ __forceinline__ void cluster_arrive_relaxed() {
  asm volatile("barrier.cluster.arrive.relaxed.aligned;" ::: "memory");
}

/// The same, and what a thread wrote before, to any block's shared memory, can be read by all after
/// they have waited.
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

/// The address in the cluster of what block `rank` has at this block's shared address.
__device__ __forceinline__ std::uint32_t map_shared(std::uint32_t address, std::uint32_t rank) {
  std::uint32_t mapped;
  asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(mapped) : "r"(address), "r"(rank));
  return mapped;
}

/// 16 bytes to an address in the cluster; they count towards the phase of a barrier in the same
/// block, whose waiters see them.
__device__ __forceinline__ void store_async_16(std::uint32_t address, const float4& v,
                                               std::uint32_t barrier) {
  asm volatile(
      "st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.v4.b32 [%0], {%1, %2, %3, %4}, "
      "[%5];" ::"r"(address),
      "r"(__float_as_uint(v.x)), "r"(__float_as_uint(v.y)), "r"(__float_as_uint(v.z)),
      "r"(__float_as_uint(v.w)), "r"(barrier)
      : "memory");
}

}  // namespace gauntlet::ptx
