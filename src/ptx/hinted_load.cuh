// Loads that say what a cache should do with the line (sm_80).
#pragma once

namespace gauntlet::ptx {

/// 16 bytes of constant data that nobody reads again: no place in L1, and L2 fetches the 256 bytes
/// around them.
__device__ __forceinline__ float4 load_once_16(const void* from) {
  float4 v;
  asm volatile("ld.global.nc.L1::no_allocate.L2::256B.v4.f32 {%0, %1, %2, %3}, [%4];"
               : "=f"(v.x), "=f"(v.y), "=f"(v.z), "=f"(v.w)
               : "l"(from));
  return v;
}

}  // namespace gauntlet::ptx
