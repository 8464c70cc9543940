// ex2: 2^x to about 2 ulp in one instruction; subnormal results are zero.
#pragma once

namespace gauntlet::ptx {

__device__ __forceinline__ float exp2_approx(float x) {
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}

}  // namespace gauntlet::ptx
