// The kernels for AVX2 with FMA.
#define GAUNTLET_SIMD avx2
#include "kernels/cpu/level.inc"
