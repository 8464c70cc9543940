// The kernels for AVX-512 with VNNI and BF16.
#define GAUNTLET_SIMD avx512_bf16
#include "kernels/cpu/level.inc"
