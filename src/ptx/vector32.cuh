// 32-byte global loads and stores, which exist from sm_100 on (PTX 8.8). CUDA C++ has no type that
// compiles to them.
#pragma once

namespace gauntlet::ptx {

struct alignas(32) Float8 {
  float lane[8];
};

__device__ __forceinline__ Float8 load_global_v8(const Float8* from) {
  Float8 v;
  asm volatile("ld.global.v8.f32 {%0, %1, %2, %3, %4, %5, %6, %7}, [%8];"
               : "=f"(v.lane[0]), "=f"(v.lane[1]), "=f"(v.lane[2]), "=f"(v.lane[3]),
                 "=f"(v.lane[4]), "=f"(v.lane[5]), "=f"(v.lane[6]), "=f"(v.lane[7])
               : "l"(__cvta_generic_to_global(from))
               : "memory");
  return v;
}

__device__ __forceinline__ void store_global_v8(Float8* to, const Float8& v) {
  asm volatile("st.global.v8.f32 [%0], {%1, %2, %3, %4, %5, %6, %7, %8};" ::"l"(
                   __cvta_generic_to_global(to)),
               "f"(v.lane[0]), "f"(v.lane[1]), "f"(v.lane[2]), "f"(v.lane[3]), "f"(v.lane[4]),
               "f"(v.lane[5]), "f"(v.lane[6]), "f"(v.lane[7])
               : "memory");
}

}  // namespace gauntlet::ptx
