// Where in a ring of stages a thread is.
#pragma once
#include <cstdint>

namespace gauntlet::kernels::cuda::inline product {

/// A stage, and the parity of its barriers there.
template <int kStages>
struct RingPlace {
  int stage = 0;
  std::uint32_t parity = 0;

  __device__ __forceinline__ void advance() {
    if (++stage == kStages) {
      stage = 0;
      parity ^= 1;
    }
  }
};

}  // namespace gauntlet::kernels::cuda::inline product
