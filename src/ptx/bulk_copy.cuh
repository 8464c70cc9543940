// cp.async.bulk: one thread copies up to a whole buffer of contiguous bytes (sm_90).
#pragma once
#include "ptx/address.cuh"

namespace gauntlet::ptx {

/// Global to shared; the bytes count towards the barrier's phase. Addresses and size are multiples
/// of 16.
__device__ __forceinline__ void bulk_load(void* shared, const void* global, std::uint32_t bytes,
                                          std::uint64_t& barrier) {
  asm volatile(
      "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::
          "r"(shared_address(shared)),
      "l"(global), "r"(bytes), "r"(shared_address(&barrier))
      : "memory");
}

/// Shared to global, in this thread's open group. Addresses and size are multiples of 16.
__device__ __forceinline__ void bulk_store(void* global, const void* shared, std::uint32_t bytes) {
  asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;" ::"l"(global),
               "r"(shared_address(shared)), "r"(bytes)
               : "memory");
}

/// Closes this thread's group of bulk stores; a group may be empty.
__device__ __forceinline__ void bulk_commit_group() {
  asm volatile("cp.async.bulk.commit_group;" ::: "memory");
}

/// Waits until all but this thread's kPending newest groups have read their shared memory, which
/// may then be reused.
template <int kPending>
__device__ __forceinline__ void bulk_wait_group_read() {
  asm volatile("cp.async.bulk.wait_group.read %0;" ::"n"(kPending) : "memory");
}

}  // namespace gauntlet::ptx
