// The kernels for AVX-512 with VNNI.
#define GAUNTLET_SIMD avx512
#include "kernels/cpu/level.inc"
