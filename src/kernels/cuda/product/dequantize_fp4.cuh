// From an MXFP4 word of the fragment order to the eight bf16 operands of a tensor-core step.
#pragma once
#include <cuda_bf16.h>

#include <cstdint>

namespace gauntlet::kernels::cuda::inline product {

/// {factor, factor} of one of four stored scale bytes.
__device__ __forceinline__ std::uint32_t scale_pair(std::uint32_t stored, int byte) {
  return __byte_perm(stored, 0, 0x4440 + byte) * 0x00800080u;
}

__device__ __forceinline__ std::uint32_t multiply_pairs(std::uint32_t a, std::uint32_t b) {
  const auto product = __hmul2(*reinterpret_cast<const __nv_bfloat162*>(&a),
                               *reinterpret_cast<const __nv_bfloat162*>(&b));
  return *reinterpret_cast<const std::uint32_t*>(&product);
}

/// Registers 0 and 2 belong to the lane's upper row, 1 and 3 to the one 8 below. An FP4 value in
/// the high bits of a bf16 is 2^-126 of itself, subnormals included.
__device__ __forceinline__ void spread_word(std::uint32_t word, std::uint32_t (&a)[4]) {
  constexpr std::uint32_t kMask = 0x81C081C0u;
  a[0] = word & kMask;
  a[1] = __funnelshift_r(word, word, 6) & kMask;
  a[2] = word << 6 & kMask;
  const std::uint32_t most = __funnelshift_r(word, word, 4) & 0x80C080C0u;
  a[3] = (word << 4 & 0x01000100u) | most;
}

/// The same registers. Turns are products here, whose halves one operation joins and masks: the
/// pipe that multiplies takes what would else go to the one that everything waits for.
__device__ __forceinline__ void spread_word_by_products(std::uint32_t word, std::uint32_t (&a)[4]) {
  constexpr std::uint32_t kMask = 0x81C081C0u;
  const auto turned = [&](int bits) {
    std::uint32_t low, high;
    asm("{\n"
        "  .reg .b64 wide;\n"
        "  mul.wide.u32 wide, %2, %3;\n"
        "  mov.b64 {%0, %1}, wide;\n"
        "}\n"
        : "=r"(low), "=r"(high)
        : "r"(word), "r"(1u << (32 - bits)));
    return low | high;
  };
  a[0] = word & kMask;
  a[1] = turned(6) & kMask;
  a[2] = word << 6 & kMask;
  const std::uint32_t most = turned(4) & 0x80C080C0u;
  a[3] = (word << 4 & 0x01000100u) | most;
}

/// The factors of the rows undo the 2^-126.
__device__ __forceinline__ void dequantize_fp4(std::uint32_t word, std::uint32_t upper_factor,
                                               std::uint32_t lower_factor, std::uint32_t (&a)[4]) {
  std::uint32_t spread[4];
  spread_word(word, spread);
  a[0] = multiply_pairs(spread[0], upper_factor);
  a[1] = multiply_pairs(spread[1], lower_factor);
  a[2] = multiply_pairs(spread[2], upper_factor);
  a[3] = multiply_pairs(spread[3], lower_factor);
}

}  // namespace gauntlet::kernels::cuda::inline product
