// prefetch: brings a line near before it is loaded (any GPU).
#pragma once

namespace gauntlet::ptx {

/// The line of global memory around `address`, to L1.
__device__ __forceinline__ void prefetch_l1(const void* address) {
  asm volatile("prefetch.global.L1 [%0];" ::"l"(address));
}

}  // namespace gauntlet::ptx
