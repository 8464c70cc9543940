// What is done once for each GPU of a process, from whichever thread comes first.
#pragma once
#include <cuda_runtime_api.h>

#include <array>
#include <mutex>

#include "core/check.h"
#include "core/cuda/check.h"

namespace gauntlet::kernels::cuda {

constexpr int kMostDevices = 64;

/// The current one: the runtime knows it without the driver.
inline int current_device() {
  int device = 0;
  cuda_check(cudaGetDevice(&device));
  check(device < kMostDevices, "more GPUs than a machine has");
  return device;
}

class OncePerDevice {
 public:
  /// Calls it for a device that nobody has called it for; others wait for that one to return. What
  /// it throws is thrown on, and it is called again by the next.
  template <class Call>
  void run(int device, const Call& call) {
    std::call_once(flags_[static_cast<std::size_t>(device)], call);
  }

 private:
  std::array<std::once_flag, kMostDevices> flags_;
};

}  // namespace gauntlet::kernels::cuda
