// wgmma of e4m3 with A in registers and B in shared memory (sm_90a).
#pragma once
#include <cstdint>

namespace gauntlet::ptx {

#define GAUNTLET_WGMMA_4(d, i) \
  "+f"((d)[i]), "+f"((d)[(i) + 1]), "+f"((d)[(i) + 2]), "+f"((d)[(i) + 3])
#define GAUNTLET_WGMMA_16(d, i)                                                       \
  GAUNTLET_WGMMA_4(d, i), GAUNTLET_WGMMA_4(d, (i) + 4), GAUNTLET_WGMMA_4(d, (i) + 8), \
      GAUNTLET_WGMMA_4(d, (i) + 12)

// d = a·b, plus d where scale_d is not 0. b is the descriptor of a K-major tile. A lane's registers
// of a are those that ldmatrix brings: rows lane / 4 and 8 further at bytes 4 (lane % 4) to 4
// (lane % 4) + 3, then both 16 bytes further. They must not change before the group has finished.

__device__ __forceinline__ void wgmma_m64n64k32_f8e4m3(float (&d)[32], const std::uint32_t (&a)[4],
                                                       std::uint64_t b, int scale_d) {
  asm volatile(
      "{\n"
      "  .reg .pred accumulate;\n"
      "  setp.ne.b32 accumulate, %37, 0;\n"
      "  wgmma.mma_async.sync.aligned.m64n64k32.f32.e4m3.e4m3 "
      "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, "
      "%19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31}, "
      "{%32, %33, %34, %35}, %36, accumulate, 1, 1;\n"
      "}\n"
      : GAUNTLET_WGMMA_16(d, 0), GAUNTLET_WGMMA_16(d, 16)
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"(scale_d));
}

__device__ __forceinline__ void wgmma_m64n128k32_f8e4m3(float (&d)[64], const std::uint32_t (&a)[4],
                                                        std::uint64_t b, int scale_d) {
  asm volatile(
      "{\n"
      "  .reg .pred accumulate;\n"
      "  setp.ne.b32 accumulate, %69, 0;\n"
      "  wgmma.mma_async.sync.aligned.m64n128k32.f32.e4m3.e4m3 "
      "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, "
      "%19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, %32, %33, %34, %35, "
      "%36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, %48, %49, %50, %51, %52, "
      "%53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63}, "
      "{%64, %65, %66, %67}, %68, accumulate, 1, 1;\n"
      "}\n"
      : GAUNTLET_WGMMA_16(d, 0), GAUNTLET_WGMMA_16(d, 16), GAUNTLET_WGMMA_16(d, 32),
        GAUNTLET_WGMMA_16(d, 48)
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"(scale_d));
}

#undef GAUNTLET_WGMMA_4
#undef GAUNTLET_WGMMA_16

}  // namespace gauntlet::ptx
