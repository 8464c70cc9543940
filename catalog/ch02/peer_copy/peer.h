// The second GPU, from a thread whose device is the first one.
#pragma once
#include <cuda_runtime_api.h>

#include <cstdint>
#include <memory>

#include "core/cuda/check.h"
#include "core/cuda/gpu_set.h"
#include "core/cuda/memory.h"

namespace gauntlet::ch02::peer_copy {

constexpr int kPeer = 1;

inline std::shared_ptr<DeviceMemory> peer_memory(std::int64_t bytes) {
  const OnDevice peer(kPeer);
  return std::make_shared<DeviceMemory>(bytes);
}

/// Copies, and counts the bytes of those that begin or end in host memory, as CUDA says.
class WatchedCopies {
 public:
  void copy(void* to, const void* from, std::int64_t bytes, cudaStream_t stream) {
    cuda_check(
        cudaMemcpyAsync(to, from, static_cast<std::size_t>(bytes), cudaMemcpyDefault, stream));
    if (on_host(to) || on_host(from)) host_bytes_ += static_cast<double>(bytes);
  }
  double host_bytes() const { return host_bytes_; }

 private:
  static bool on_host(const void* pointer) {
    cudaPointerAttributes attributes{};
    cuda_check(cudaPointerGetAttributes(&attributes, pointer));
    return attributes.type != cudaMemoryTypeDevice;
  }
  double host_bytes_ = 0;
};

}  // namespace gauntlet::ch02::peer_copy
