// wgmma: matrix products of a warpgroup with both operands in shared memory (sm_90a).
#pragma once
#include "ptx/address.cuh"

namespace gauntlet::ptx {

/// Orders register and shared-memory accesses before the wgmma that follow.
__device__ __forceinline__ void wgmma_fence() {
  asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
}

__device__ __forceinline__ void wgmma_commit_group() {
  asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}

/// Waits until at most kPending of the newest groups are unfinished.
template <int kPending>
__device__ __forceinline__ void wgmma_wait_group() {
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(kPending) : "memory");
}

/// Describes a K-major tile of 128-byte rows in the 128-byte swizzle, 1024-byte aligned; groups of
/// 8 rows are 1024 bytes apart. The next 32 bytes along K are at +2.
__device__ __forceinline__ std::uint64_t wgmma_descriptor_128b(const void* tile) {
  const std::uint64_t address = (shared_address(tile) & 0x3FFFF) >> 4;
  return address | std::uint64_t{1} << 16 | std::uint64_t{1024 >> 4} << 32 | std::uint64_t{1} << 62;
}

// The 128 accumulator registers of a 64 x 256 tile, as PTX names them and as asm operands.
#define GAUNTLET_WGMMA_D128                                                           \
  "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, " \
  "%18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, %32, %33, "  \
  "%34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, %48, %49, "  \
  "%50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63, %64, %65, "  \
  "%66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, %77, %78, %79, %80, %81, "  \
  "%82, %83, %84, %85, %86, %87, %88, %89, %90, %91, %92, %93, %94, %95, %96, %97, "  \
  "%98, %99, %100, %101, %102, %103, %104, %105, %106, %107, %108, %109, %110, "      \
  "%111, %112, %113, %114, %115, %116, %117, %118, %119, %120, %121, %122, %123, "    \
  "%124, %125, %126, %127}"
#define GAUNTLET_WGMMA_4(c, d, i) c((d)[i]), c((d)[(i) + 1]), c((d)[(i) + 2]), c((d)[(i) + 3])
#define GAUNTLET_WGMMA_16(c, d, i)                                                             \
  GAUNTLET_WGMMA_4(c, d, i), GAUNTLET_WGMMA_4(c, d, (i) + 4), GAUNTLET_WGMMA_4(c, d, (i) + 8), \
      GAUNTLET_WGMMA_4(c, d, (i) + 12)
#define GAUNTLET_WGMMA_128(c, d)                                                             \
  GAUNTLET_WGMMA_16(c, d, 0), GAUNTLET_WGMMA_16(c, d, 16), GAUNTLET_WGMMA_16(c, d, 32),      \
      GAUNTLET_WGMMA_16(c, d, 48), GAUNTLET_WGMMA_16(c, d, 64), GAUNTLET_WGMMA_16(c, d, 80), \
      GAUNTLET_WGMMA_16(c, d, 96), GAUNTLET_WGMMA_16(c, d, 112)

// d = a·b, plus d where scale_d is not 0. Operands are descriptors of K-major tiles.

__device__ __forceinline__ void wgmma_m64n256k16_bf16(float (&d)[128], std::uint64_t a,
                                                      std::uint64_t b, int scale_d) {
  asm volatile(
      "{\n"
      "  .reg .pred accumulate;\n"
      "  setp.ne.b32 accumulate, %130, 0;\n"
      "  wgmma.mma_async.sync.aligned.m64n256k16.f32.bf16.bf16 " GAUNTLET_WGMMA_D128
      ", %128, %129, accumulate, 1, 1, 0, 0;\n"
      "}\n"
      : GAUNTLET_WGMMA_128("+f", d)
      : "l"(a), "l"(b), "r"(scale_d));
}

__device__ __forceinline__ void wgmma_m64n256k16_f16(float (&d)[128], std::uint64_t a,
                                                     std::uint64_t b, int scale_d) {
  asm volatile(
      "{\n"
      "  .reg .pred accumulate;\n"
      "  setp.ne.b32 accumulate, %130, 0;\n"
      "  wgmma.mma_async.sync.aligned.m64n256k16.f32.f16.f16 " GAUNTLET_WGMMA_D128
      ", %128, %129, accumulate, 1, 1, 0, 0;\n"
      "}\n"
      : GAUNTLET_WGMMA_128("+f", d)
      : "l"(a), "l"(b), "r"(scale_d));
}

__device__ __forceinline__ void wgmma_m64n256k8_tf32(float (&d)[128], std::uint64_t a,
                                                     std::uint64_t b, int scale_d) {
  asm volatile(
      "{\n"
      "  .reg .pred accumulate;\n"
      "  setp.ne.b32 accumulate, %130, 0;\n"
      "  wgmma.mma_async.sync.aligned.m64n256k8.f32.tf32.tf32 " GAUNTLET_WGMMA_D128
      ", %128, %129, accumulate, 1, 1;\n"
      "}\n"
      : GAUNTLET_WGMMA_128("+f", d)
      : "l"(a), "l"(b), "r"(scale_d));
}

__device__ __forceinline__ void wgmma_m64n256k32_f8e4m3(float (&d)[128], std::uint64_t a,
                                                        std::uint64_t b, int scale_d) {
  asm volatile(
      "{\n"
      "  .reg .pred accumulate;\n"
      "  setp.ne.b32 accumulate, %130, 0;\n"
      "  wgmma.mma_async.sync.aligned.m64n256k32.f32.e4m3.e4m3 " GAUNTLET_WGMMA_D128
      ", %128, %129, accumulate, 1, 1;\n"
      "}\n"
      : GAUNTLET_WGMMA_128("+f", d)
      : "l"(a), "l"(b), "r"(scale_d));
}

__device__ __forceinline__ void wgmma_m64n256k32_i8(std::int32_t (&d)[128], std::uint64_t a,
                                                    std::uint64_t b, int scale_d) {
  asm volatile(
      "{\n"
      "  .reg .pred accumulate;\n"
      "  setp.ne.b32 accumulate, %130, 0;\n"
      "  wgmma.mma_async.sync.aligned.m64n256k32.s32.s8.s8 " GAUNTLET_WGMMA_D128
      ", %128, %129, accumulate;\n"
      "}\n"
      : GAUNTLET_WGMMA_128("+r", d)
      : "l"(a), "l"(b), "r"(scale_d));
}

#undef GAUNTLET_WGMMA_D128
#undef GAUNTLET_WGMMA_4
#undef GAUNTLET_WGMMA_16
#undef GAUNTLET_WGMMA_128

}  // namespace gauntlet::ptx
