// wgmma of bf16 and e4m3 operands in shared memory, 128 columns wide (sm_90a); wgmma.cuh has 256.
#pragma once
#include <cstdint>

namespace gauntlet::ptx {

#define GAUNTLET_WGMMA_4(d, i) \
  "+f"((d)[i]), "+f"((d)[(i) + 1]), "+f"((d)[(i) + 2]), "+f"((d)[(i) + 3])
#define GAUNTLET_WGMMA_16(d, i)                                                       \
  GAUNTLET_WGMMA_4(d, i), GAUNTLET_WGMMA_4(d, (i) + 4), GAUNTLET_WGMMA_4(d, (i) + 8), \
      GAUNTLET_WGMMA_4(d, (i) + 12)

// d = a·b, plus d where scale_d is not 0; descriptors of K-major tiles.

__device__ __forceinline__ void wgmma_m64n128k16_bf16(float (&d)[64], std::uint64_t a,
                                                      std::uint64_t b, int scale_d) {
  asm volatile(
      "{\n"
      "  .reg .pred accumulate;\n"
      "  setp.ne.b32 accumulate, %66, 0;\n"
      "  wgmma.mma_async.sync.aligned.m64n128k16.f32.bf16.bf16 "
      "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, "
      "%19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, %32, %33, %34, %35, "
      "%36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, %48, %49, %50, %51, %52, "
      "%53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63}, "
      "%64, %65, accumulate, 1, 1, 0, 0;\n"
      "}\n"
      : GAUNTLET_WGMMA_16(d, 0), GAUNTLET_WGMMA_16(d, 16), GAUNTLET_WGMMA_16(d, 32),
        GAUNTLET_WGMMA_16(d, 48)
      : "l"(a), "l"(b), "r"(scale_d));
}

__device__ __forceinline__ void wgmma_m64n128k32_f8e4m3(float (&d)[64], std::uint64_t a,
                                                        std::uint64_t b, int scale_d) {
  asm volatile(
      "{\n"
      "  .reg .pred accumulate;\n"
      "  setp.ne.b32 accumulate, %66, 0;\n"
      "  wgmma.mma_async.sync.aligned.m64n128k32.f32.e4m3.e4m3 "
      "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, "
      "%19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, %32, %33, %34, %35, "
      "%36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, %48, %49, %50, %51, %52, "
      "%53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63}, "
      "%64, %65, accumulate, 1, 1;\n"
      "}\n"
      : GAUNTLET_WGMMA_16(d, 0), GAUNTLET_WGMMA_16(d, 16), GAUNTLET_WGMMA_16(d, 32),
        GAUNTLET_WGMMA_16(d, 48)
      : "l"(a), "l"(b), "r"(scale_d));
}

#undef GAUNTLET_WGMMA_4
#undef GAUNTLET_WGMMA_16

}  // namespace gauntlet::ptx
