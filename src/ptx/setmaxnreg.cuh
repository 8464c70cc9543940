// setmaxnreg: registers move between the warpgroups of a block (sm_90a). Every warp of a warpgroup
// executes it; the count is a multiple of 8 in 24..256.
#pragma once

namespace gauntlet::ptx {

/// Waits until the block has so many registers to give.
template <int kRegisters>
__device__ __forceinline__ void setmaxnreg_increase() {
  static_assert(kRegisters % 8 == 0 && kRegisters >= 24 && kRegisters <= 256);
  asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(kRegisters));
}

template <int kRegisters>
__device__ __forceinline__ void setmaxnreg_decrease() {
  static_assert(kRegisters % 8 == 0 && kRegisters >= 24 && kRegisters <= 256);
  asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(kRegisters));
}

}  // namespace gauntlet::ptx
