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

/// The same with the 32-bit shared-memory address.
__device__ __forceinline__ void cp_async_16(std::uint32_t shared, const void* global) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(shared), "l"(global) : "memory");
}

/// The same of `bytes` bytes, 0 to 16; the rest of the 16 becomes zero. With 0 nothing is read.
__device__ __forceinline__ void cp_async_16(void* shared, const void* global, std::uint32_t bytes) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(shared_address(shared)),
               "l"(global), "r"(bytes)
               : "memory");
}

/// 4 bytes, of which `bytes` are read and the rest becomes zero.
__device__ __forceinline__ void cp_async_4(void* shared, const void* global, std::uint32_t bytes) {
  asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;" ::"r"(shared_address(shared)),
               "l"(global), "r"(bytes)
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
