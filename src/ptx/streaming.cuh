// Loads of what a block reads once: past L1.
#pragma once
#include <cstdint>

namespace gauntlet::ptx {

__device__ __forceinline__ uint4 load_streaming_16(const void* from) {
  uint4 v;
  asm volatile("ld.global.nc.L1::no_allocate.v4.u32 {%0, %1, %2, %3}, [%4];"
               : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
               : "l"(from));
  return v;
}

__device__ __forceinline__ std::uint32_t load_streaming_4(const void* from) {
  std::uint32_t v;
  asm volatile("ld.global.nc.L1::no_allocate.u32 %0, [%1];" : "=r"(v) : "l"(from));
  return v;
}

}  // namespace gauntlet::ptx
