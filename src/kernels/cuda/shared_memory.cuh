// How much shared memory a launch of a kernel may ask for: set once, to all that there is, since
// threads that set it for launches of their own would take it from each other.
#pragma once
#include <cuda_runtime.h>

#include "core/cuda/check.h"
#include "kernels/cuda/device_facts.h"
#include "kernels/cuda/once_per_device.h"

namespace gauntlet::kernels::cuda {

/// How an SM divides its memory between L1 and blocks that run the kernel.
enum class Carveout { of_the_driver, most_shared };

/// Lets launches of the kernel on the current device take as much dynamic shared memory as its
/// static shared memory leaves. How much one takes is what its shape says. From any thread.
///
/// An attribute belongs to a kernel on one device: hence a flag for each device in each instance of
/// this template. Once set, a launch pays for one load and the number of its thread's device.
template <auto kKernel, Carveout kCarveout = Carveout::of_the_driver>
void allow_shared_memory() {
  static OncePerDevice once;
  once.run(current_device(), [] {
    cudaFuncAttributes attributes{};
    cuda_check(cudaFuncGetAttributes(&attributes, kKernel));
    const std::size_t left = device_facts().most_shared_bytes - attributes.sharedSizeBytes;
    cuda_check(cudaFuncSetAttribute(kKernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                    static_cast<int>(left)));
    if constexpr (kCarveout == Carveout::most_shared) {
      cuda_check(cudaFuncSetAttribute(kKernel, cudaFuncAttributePreferredSharedMemoryCarveout,
                                      cudaSharedmemCarveoutMaxShared));
    }
  });
}

}  // namespace gauntlet::kernels::cuda
