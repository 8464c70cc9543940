// Needs far more live values than a thread of a 1024-thread block has registers: ptxas must spill, so the build of
// this file must fail.
#include <cuda_runtime.h>

__global__ void __launch_bounds__(1024) spills(const float* in, float* out) {
  float live[128];
#pragma unroll
  for (int i = 0; i < 128; ++i) live[i] = in[i * 1024 + threadIdx.x];
  for (int step = 0; step < 64; ++step) {
#pragma unroll
    for (int i = 0; i < 128; ++i) live[i] = live[i] * live[(i + 37) % 128] + in[step];
  }
#pragma unroll
  for (int i = 0; i < 128; ++i) out[i * 1024 + threadIdx.x] = live[i];
}
