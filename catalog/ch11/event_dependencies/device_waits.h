// Waiting for the whole device where the number of waits is the subject.
#pragma once
#include <cuda_runtime_api.h>

#include <cstdint>
#include <memory>

#include "core/cuda/check.h"
#include "lab/author/counted.h"

namespace gauntlet::ch11::event_dependencies {

/// Makes the host wait until the device has done everything, and counts how often it did.
class DeviceWaits {
 public:
  void wait() {
    cuda_check(cudaDeviceSynchronize());
    ++count_;
  }
  std::uint64_t count() const { return count_; }

 private:
  std::uint64_t count_ = 0;
};

/// "device_waits" of a run.
inline lab::Count device_waits(const std::shared_ptr<DeviceWaits>& waits) {
  return {.name = "device_waits",
          .total = [waits] { return static_cast<double>(waits->count()); },
          .per = {}};
}

}  // namespace gauntlet::ch11::event_dependencies
