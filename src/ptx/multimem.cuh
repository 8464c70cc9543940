// Loads that add up what all GPUs of a multicast object hold at an address, and stores that reach
// all of them: the switch between the GPUs does both (sm_90).
#pragma once
#include <cuda_runtime.h>

namespace gauntlet::ptx {

__device__ __forceinline__ float4 multimem_load_sum(const float4* address) {
  float4 sum;
  asm volatile("multimem.ld_reduce.relaxed.sys.global.add.v4.f32 {%0, %1, %2, %3}, [%4];"
               : "=f"(sum.x), "=f"(sum.y), "=f"(sum.z), "=f"(sum.w)
               : "l"(address)
               : "memory");
  return sum;
}

__device__ __forceinline__ void multimem_store(float4* address, float4 value) {
  asm volatile("multimem.st.relaxed.sys.global.v4.f32 [%0], {%1, %2, %3, %4};" ::"l"(address),
               "f"(value.x), "f"(value.y), "f"(value.z), "f"(value.w)
               : "memory");
}

}  // namespace gauntlet::ptx
