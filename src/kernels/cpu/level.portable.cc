// The kernels for any machine.
#define GAUNTLET_SIMD portable
#include "kernels/cpu/level.inc"
