// nanosleep: a thread gives up its turns for a while (any GPU).
#pragma once

namespace gauntlet::ptx {

/// For at most twice as long.
__device__ __forceinline__ void nanosleep(unsigned nanoseconds) {
  asm volatile("nanosleep.u32 %0;" ::"r"(nanoseconds));
}

}  // namespace gauntlet::ptx
