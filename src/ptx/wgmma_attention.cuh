// wgmma in the shapes of attention: weights in registers times values, which lie with a row for
// each key or, in 8 bits, for each dimension (sm_90a).
#pragma once
#include <cstdint>

namespace gauntlet::ptx {

// Accumulators as PTX names them, and values as asm operands.
#define GAUNTLET_WGMMA_D32                                                                      \
  "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, " \
  "%20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31"
#define GAUNTLET_WGMMA_D64                                                                  \
  GAUNTLET_WGMMA_D32                                                                        \
  ", %32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, %48, " \
  "%49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63"
#define GAUNTLET_WGMMA_4(c, d, i) c((d)[i]), c((d)[(i) + 1]), c((d)[(i) + 2]), c((d)[(i) + 3])
#define GAUNTLET_WGMMA_16(c, d, i)                                                             \
  GAUNTLET_WGMMA_4(c, d, i), GAUNTLET_WGMMA_4(c, d, (i) + 4), GAUNTLET_WGMMA_4(c, d, (i) + 8), \
      GAUNTLET_WGMMA_4(c, d, (i) + 12)
#define GAUNTLET_WGMMA_32(c, d, i) GAUNTLET_WGMMA_16(c, d, i), GAUNTLET_WGMMA_16(c, d, (i) + 16)
#define GAUNTLET_WGMMA_64(c, d, i) GAUNTLET_WGMMA_32(c, d, i), GAUNTLET_WGMMA_32(c, d, (i) + 32)

// d += a·b with a in registers; they must not change before the group has finished.
#define GAUNTLET_WGMMA_VALUES(name, shape, types, count, registers, a, b, tail)            \
  __device__ __forceinline__ void name(float(&d)[count], const std::uint32_t* registers_a, \
                                       std::uint64_t descriptor_b) {                       \
    asm volatile(                                                                          \
        "{\n"                                                                              \
        "  .reg .pred accumulate;\n"                                                       \
        "  setp.eq.b32 accumulate, 0, 0;\n"                                                \
        "  wgmma.mma_async.sync.aligned." shape ".f32." types " " registers "}, " a ", " b \
        ", accumulate, 1, 1" tail                                                          \
        ";\n"                                                                              \
        "}\n"                                                                              \
        : GAUNTLET_WGMMA_##count("+f", d, 0)                                               \
        : GAUNTLET_WGMMA_4("r", registers_a, 0), "l"(descriptor_b));                       \
  }

// b is MN-major: a row of shared memory holds 64 columns of it for one k.
GAUNTLET_WGMMA_VALUES(wgmma_m64n64k16_bf16_rows, "m64n64k16", "bf16.bf16", 32, GAUNTLET_WGMMA_D32,
                      "{%32, %33, %34, %35}", "%36", ", 1")
GAUNTLET_WGMMA_VALUES(wgmma_m64n128k16_bf16_rows, "m64n128k16", "bf16.bf16", 64, GAUNTLET_WGMMA_D64,
                      "{%64, %65, %66, %67}", "%68", ", 1")
// b is K-major, the only order there is for 8-bit types.
GAUNTLET_WGMMA_VALUES(wgmma_m64n64k32_f8e4m3_columns, "m64n64k32", "e4m3.e4m3", 32,
                      GAUNTLET_WGMMA_D32, "{%32, %33, %34, %35}", "%36", "")
GAUNTLET_WGMMA_VALUES(wgmma_m64n128k32_f8e4m3_columns, "m64n128k32", "e4m3.e4m3", 64,
                      GAUNTLET_WGMMA_D64, "{%64, %65, %66, %67}", "%68", "")

#undef GAUNTLET_WGMMA_VALUES
#undef GAUNTLET_WGMMA_D32
#undef GAUNTLET_WGMMA_D64
#undef GAUNTLET_WGMMA_4
#undef GAUNTLET_WGMMA_16
#undef GAUNTLET_WGMMA_32
#undef GAUNTLET_WGMMA_64

// Tell the compiler that a wgmma reads or writes these registers, so that nothing that uses them
// moves over the place where the program waits for it.

template <int kCount>
__device__ __forceinline__ void wgmma_registers_change(float (&registers)[kCount]) {
#pragma unroll
  for (int i = 0; i < kCount; ++i) asm volatile("" : "+f"(registers[i])::"memory");
}

template <int kCount>
__device__ __forceinline__ void wgmma_registers_change(std::uint32_t (&registers)[kCount]) {
#pragma unroll
  for (int i = 0; i < kCount; ++i) asm volatile("" : "+r"(registers[i])::"memory");
}

}  // namespace gauntlet::ptx
