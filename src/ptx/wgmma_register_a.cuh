// wgmma: matrix products of a warpgroup with A in registers and B in shared memory (sm_90a).
#pragma once
#include <cstdint>

namespace gauntlet::ptx {

// Accumulators as PTX names them, and values as asm operands.
#define GAUNTLET_WGMMA_D8 "%0, %1, %2, %3, %4, %5, %6, %7"
#define GAUNTLET_WGMMA_D16 GAUNTLET_WGMMA_D8 ", %8, %9, %10, %11, %12, %13, %14, %15"
#define GAUNTLET_WGMMA_D32 \
  GAUNTLET_WGMMA_D16       \
  ", %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31"
#define GAUNTLET_WGMMA_D64                                                                  \
  GAUNTLET_WGMMA_D32                                                                        \
  ", %32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, %48, " \
  "%49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63"
#define GAUNTLET_WGMMA_D128                                                                    \
  GAUNTLET_WGMMA_D64                                                                           \
  ", %64, %65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, %77, %78, %79, %80, "    \
  "%81, %82, %83, %84, %85, %86, %87, %88, %89, %90, %91, %92, %93, %94, %95, %96, %97, %98, " \
  "%99, %100, %101, %102, %103, %104, %105, %106, %107, %108, %109, %110, %111, %112, %113, "  \
  "%114, %115, %116, %117, %118, %119, %120, %121, %122, %123, %124, %125, %126, %127"
#define GAUNTLET_WGMMA_4(c, d, i) c((d)[i]), c((d)[(i) + 1]), c((d)[(i) + 2]), c((d)[(i) + 3])
#define GAUNTLET_WGMMA_8(c, d, i) GAUNTLET_WGMMA_4(c, d, i), GAUNTLET_WGMMA_4(c, d, (i) + 4)
#define GAUNTLET_WGMMA_16(c, d, i) GAUNTLET_WGMMA_8(c, d, i), GAUNTLET_WGMMA_8(c, d, (i) + 8)
#define GAUNTLET_WGMMA_32(c, d, i) GAUNTLET_WGMMA_16(c, d, i), GAUNTLET_WGMMA_16(c, d, (i) + 16)
#define GAUNTLET_WGMMA_64(c, d, i) GAUNTLET_WGMMA_32(c, d, i), GAUNTLET_WGMMA_32(c, d, (i) + 32)
#define GAUNTLET_WGMMA_128(c, d, i) GAUNTLET_WGMMA_64(c, d, i), GAUNTLET_WGMMA_64(c, d, (i) + 64)

// d = a·b, plus d where scale_d is not 0. b is the descriptor of a K-major tile. A lane's registers
// of a: rows g and g + 8 at columns 2t, 2t + 1, then both at columns 8 further, with g = lane / 4
// and t = lane % 4 in the 16 rows of its warp. They must not change before the group has finished.

__device__ __forceinline__ void wgmma_m64n16k16_bf16(float (&d)[8], const std::uint32_t (&a)[4],
                                                     std::uint64_t b, int scale_d) {
  asm volatile(
      "{\n"
      "  .reg .pred accumulate;\n"
      "  setp.ne.b32 accumulate, %13, 0;\n"
      "  wgmma.mma_async.sync.aligned.m64n16k16.f32.bf16.bf16 {" GAUNTLET_WGMMA_D8
      "}, {%8, %9, %10, %11}, %12, accumulate, 1, 1, 0;\n"
      "}\n"
      : GAUNTLET_WGMMA_8("+f", d, 0)
      : GAUNTLET_WGMMA_4("r", a, 0), "l"(b), "r"(scale_d));
}

__device__ __forceinline__ void wgmma_m64n32k16_bf16(float (&d)[16], const std::uint32_t (&a)[4],
                                                     std::uint64_t b, int scale_d) {
  asm volatile(
      "{\n"
      "  .reg .pred accumulate;\n"
      "  setp.ne.b32 accumulate, %21, 0;\n"
      "  wgmma.mma_async.sync.aligned.m64n32k16.f32.bf16.bf16 {" GAUNTLET_WGMMA_D16
      "}, {%16, %17, %18, %19}, %20, accumulate, 1, 1, 0;\n"
      "}\n"
      : GAUNTLET_WGMMA_16("+f", d, 0)
      : GAUNTLET_WGMMA_4("r", a, 0), "l"(b), "r"(scale_d));
}

__device__ __forceinline__ void wgmma_m64n64k16_bf16(float (&d)[32], const std::uint32_t (&a)[4],
                                                     std::uint64_t b, int scale_d) {
  asm volatile(
      "{\n"
      "  .reg .pred accumulate;\n"
      "  setp.ne.b32 accumulate, %37, 0;\n"
      "  wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 {" GAUNTLET_WGMMA_D32
      "}, {%32, %33, %34, %35}, %36, accumulate, 1, 1, 0;\n"
      "}\n"
      : GAUNTLET_WGMMA_32("+f", d, 0)
      : GAUNTLET_WGMMA_4("r", a, 0), "l"(b), "r"(scale_d));
}

__device__ __forceinline__ void wgmma_m64n128k16_bf16(float (&d)[64], const std::uint32_t (&a)[4],
                                                      std::uint64_t b, int scale_d) {
  asm volatile(
      "{\n"
      "  .reg .pred accumulate;\n"
      "  setp.ne.b32 accumulate, %69, 0;\n"
      "  wgmma.mma_async.sync.aligned.m64n128k16.f32.bf16.bf16 {" GAUNTLET_WGMMA_D64
      "}, {%64, %65, %66, %67}, %68, accumulate, 1, 1, 0;\n"
      "}\n"
      : GAUNTLET_WGMMA_64("+f", d, 0)
      : GAUNTLET_WGMMA_4("r", a, 0), "l"(b), "r"(scale_d));
}

__device__ __forceinline__ void wgmma_m64n256k16_bf16(float (&d)[128], const std::uint32_t (&a)[4],
                                                      std::uint64_t b, int scale_d) {
  asm volatile(
      "{\n"
      "  .reg .pred accumulate;\n"
      "  setp.ne.b32 accumulate, %133, 0;\n"
      "  wgmma.mma_async.sync.aligned.m64n256k16.f32.bf16.bf16 {" GAUNTLET_WGMMA_D128
      "}, {%128, %129, %130, %131}, %132, accumulate, 1, 1, 0;\n"
      "}\n"
      : GAUNTLET_WGMMA_128("+f", d, 0)
      : GAUNTLET_WGMMA_4("r", a, 0), "l"(b), "r"(scale_d));
}

#undef GAUNTLET_WGMMA_D8
#undef GAUNTLET_WGMMA_D16
#undef GAUNTLET_WGMMA_D32
#undef GAUNTLET_WGMMA_D64
#undef GAUNTLET_WGMMA_D128
#undef GAUNTLET_WGMMA_4
#undef GAUNTLET_WGMMA_8
#undef GAUNTLET_WGMMA_16
#undef GAUNTLET_WGMMA_32
#undef GAUNTLET_WGMMA_64
#undef GAUNTLET_WGMMA_128

}  // namespace gauntlet::ptx
