// The kernels for AMX, with AVX-512 for what is not a product.
#define GAUNTLET_SIMD amx
#include "kernels/cpu/level.inc"
