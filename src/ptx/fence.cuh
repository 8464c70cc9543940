// Fences between a thread's ordinary accesses and the asynchronous engine of bulk copies (sm_90).
#pragma once

namespace gauntlet::ptx {

/// Makes mbarrier_init() visible to bulk copies and to other threads that synchronise afterwards.
__device__ __forceinline__ void fence_mbarrier_init() {
  asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}

/// Makes this thread's ordinary writes to shared memory visible to bulk copies issued after the
/// next barrier.
__device__ __forceinline__ void fence_proxy_async_shared() {
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}

}  // namespace gauntlet::ptx
