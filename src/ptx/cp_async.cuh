// cp.async: a thread's copy from global to shared memory that does not wait and needs no register
// (sm_80).
#pragma once
#include "ptx/address.cuh"

namespace gauntlet::ptx {

/// 16 bytes, past L1. Both addresses are multiples of 16.
__device__ __forceinline__ void cp_async_16(void* shared, const void* global) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(shared_address(shared)),
               "l"(global)
               : "memory");
}

/// Closes this thread's group of copies; a group may be empty.
__device__ __forceinline__ void cp_async_commit_group() {
  asm volatile("cp.async.commit_group;" ::: "memory");
}

/// Waits until at most kPending of this thread's newest groups are unfinished.
template <int kPending>
__device__ __forceinline__ void cp_async_wait_group() {
  asm volatile("cp.async.wait_group %0;" ::"n"(kPending) : "memory");
}

}  // namespace gauntlet::ptx
