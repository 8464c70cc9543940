// Several GPUs of one process, with a stream each.
#pragma once
#include <cuda_runtime_api.h>

#include <cstdint>
#include <deque>
#include <string>
#include <utility>
#include <vector>

#include "core/cuda/check.h"
#include "core/cuda/memory.h"
#include "core/cuda/side_streams.h"

namespace gauntlet {

/// What is made or launched meanwhile belongs to that device.
class OnDevice {
 public:
  explicit OnDevice(int device) {
    cuda_check(cudaGetDevice(&before_));
    cuda_check(cudaSetDevice(device));
  }
  ~OnDevice() { cudaSetDevice(before_); }
  OnDevice(const OnDevice&) = delete;
  OnDevice& operator=(const OnDevice&) = delete;

 private:
  int before_ = 0;
};

/// Kernels and copy engines of `device` reach the memory of `other` from now on.
inline void let_reach(int device, int other) {
  if (device == other) return;
  int can = 0;
  cuda_check(cudaDeviceCanAccessPeer(&can, device, other));
  check(can != 0, "GPU " + std::to_string(device) + " cannot reach the memory of GPU " +
                      std::to_string(other) + ": see nvidia-smi topo -p2p r");
  const OnDevice on(device);
  const cudaError_t status = cudaDeviceEnablePeerAccess(other, 0);
  if (status == cudaErrorPeerAccessAlreadyEnabled) {
    cudaGetLastError();  // it is not left for the next call to find
  } else {
    cuda_check(status);
  }
}

/// All reach each other's memory. A device may be there more than once, as places that share it.
class GpuSet {
 public:
  enum class Priority { usual, high };

  explicit GpuSet(const std::vector<int>& devices, Priority priority = Priority::usual) {
    for (const int device : devices) {
      const OnDevice on(device);
      gpus_.emplace_back(device, priority);
    }
    for (const int device : devices) {
      for (const int other : devices) let_reach(device, other);
    }
  }

  int size() const { return static_cast<int>(gpus_.size()); }
  int device(int gpu) const { return at(gpu).device; }
  cudaStream_t stream(int gpu) const { return at(gpu).stream; }
  DeviceMemory memory(int gpu, std::int64_t bytes) const {
    const OnDevice on(device(gpu));
    return DeviceMemory(bytes);
  }

  /// What they are given from now on starts when `main`, of the device that is current, has come to
  /// here.
  void fork(cudaStream_t main) const {
    forked_.record(main);
    for (const Gpu& gpu : gpus_) forked_.hold(gpu.stream);
  }
  /// What `main` is given from now on starts when they have done what they were given.
  void join(cudaStream_t main) const {
    for (const Gpu& gpu : gpus_) {
      gpu.done.record(gpu.stream);
      gpu.done.hold(main);
    }
  }
  /// What any of them is given from now on starts when all have done what they were given.
  void meet() const {
    for (const Gpu& gpu : gpus_) gpu.done.record(gpu.stream);
    for (const Gpu& gpu : gpus_) {
      for (const Gpu& other : gpus_) other.done.hold(gpu.stream);
    }
  }

 private:
  struct Gpu {
    Gpu(int device_, Priority priority) : device(device_) {
      int least = 0, greatest = 0;
      cuda_check(cudaDeviceGetStreamPriorityRange(&least, &greatest));
      cuda_check(cudaStreamCreateWithPriority(&stream, cudaStreamNonBlocking,
                                              priority == Priority::high ? greatest : 0));
    }
    Gpu(const Gpu&) = delete;
    Gpu& operator=(const Gpu&) = delete;
    ~Gpu() { cudaStreamDestroy(stream); }

    int device;
    cudaStream_t stream = nullptr;
    StreamEvent done;
  };
  const Gpu& at(int gpu) const { return gpus_[static_cast<std::size_t>(gpu)]; }

  StreamEvent forked_;
  std::deque<Gpu> gpus_;
};

}  // namespace gauntlet
