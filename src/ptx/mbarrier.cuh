// mbarrier: a barrier in shared memory that counts arrivals and the bytes of bulk copies (sm_90).
#pragma once
#include "ptx/address.cuh"

namespace gauntlet::ptx {

/// A phase ends after `arrivals` arrivals and all the bytes they expect. fence_mbarrier_init()
/// comes next.
__device__ __forceinline__ void mbarrier_init(std::uint64_t& barrier, std::uint32_t arrivals) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(shared_address(&barrier)),
               "r"(arrivals)
               : "memory");
}

__device__ __forceinline__ void mbarrier_arrive(std::uint64_t& barrier) {
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(shared_address(&barrier))
               : "memory");
}

/// One arrival that makes the current phase also wait for `bytes` of copies.
__device__ __forceinline__ void mbarrier_arrive_expect_tx(std::uint64_t& barrier,
                                                          std::uint32_t bytes) {
  asm volatile(
      "mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(shared_address(&barrier)),
      "r"(bytes)
      : "memory");
}

/// True once the phase of this parity has ended; suspends the thread for a while before it says no.
__device__ __forceinline__ bool mbarrier_try_wait(std::uint64_t& barrier, std::uint32_t parity) {
  std::uint32_t done;
  asm volatile(
      "{\n"
      "  .reg .pred ended;\n"
      "  mbarrier.try_wait.parity.shared::cta.b64 ended, [%1], %2;\n"
      "  selp.u32 %0, 1, 0, ended;\n"
      "}\n"
      : "=r"(done)
      : "r"(shared_address(&barrier)), "r"(parity)
      : "memory");
  return done != 0;
}

/// The same where other blocks of the cluster complete the phase.
__device__ __forceinline__ bool mbarrier_try_wait_cluster(std::uint64_t& barrier,
                                                          std::uint32_t parity) {
  std::uint32_t done;
  asm volatile(
      "{\n"
      "  .reg .pred ended;\n"
      "  mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 ended, [%1], %2;\n"
      "  selp.u32 %0, 1, 0, ended;\n"
      "}\n"
      : "=r"(done)
      : "r"(shared_address(&barrier)), "r"(parity)
      : "memory");
  return done != 0;
}

}  // namespace gauntlet::ptx
