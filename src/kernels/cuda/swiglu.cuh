// The clamped SwiGLU of gpt-oss.
#pragma once

namespace gauntlet::kernels::cuda {

__device__ __forceinline__ float clamped_swiglu(float gate, float up, float limit) {
  gate = fminf(gate, limit);
  up = fminf(fmaxf(up, -limit), limit);
  return (up + 1) * __fdividef(gate, 1 + expf(-1.702f * gate));
}

}  // namespace gauntlet::kernels::cuda
