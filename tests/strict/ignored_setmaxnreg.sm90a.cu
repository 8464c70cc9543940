// Asks for other registers than it was launched with, but never says how many those are: ptxas ignores the
// instruction and reports C7508 as information, so the build of this file must fail.
#include <cuda_runtime.h>

__global__ void ignored_setmaxnreg(float* out) {
  asm volatile("setmaxnreg.dec.sync.aligned.u32 24;");
  out[threadIdx.x] = 1.0f;
}
