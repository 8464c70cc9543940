// Device and pinned host memory, streams and events that free themselves.
#pragma once
#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>
#include <utility>

#include "core/cuda/check.h"

namespace gauntlet {

/// Bytes on the device.
class DeviceMemory {
 public:
  DeviceMemory() = default;
  explicit DeviceMemory(std::int64_t bytes) : bytes_(bytes) {
    if (bytes > 0) cuda_check(cudaMalloc(&data_, static_cast<std::size_t>(bytes)));
  }
  DeviceMemory(DeviceMemory&& other) noexcept { swap(other); }
  DeviceMemory& operator=(DeviceMemory&& other) noexcept {
    swap(other);
    return *this;
  }
  ~DeviceMemory() { cudaFree(data_); }

  std::uint8_t* data() const { return static_cast<std::uint8_t*>(data_); }
  std::int64_t bytes() const { return bytes_; }

 private:
  void swap(DeviceMemory& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(bytes_, other.bytes_);
  }
  void* data_ = nullptr;
  std::int64_t bytes_ = 0;
};

/// Host memory that the device copies from and to without a detour.
class PinnedMemory {
 public:
  PinnedMemory() = default;
  explicit PinnedMemory(std::int64_t bytes) {
    if (bytes > 0) cuda_check(cudaMallocHost(&data_, static_cast<std::size_t>(bytes)));
  }
  PinnedMemory(PinnedMemory&& other) noexcept { std::swap(data_, other.data_); }
  PinnedMemory& operator=(PinnedMemory&& other) noexcept {
    std::swap(data_, other.data_);
    return *this;
  }
  ~PinnedMemory() { cudaFreeHost(data_); }

  std::uint8_t* data() const { return static_cast<std::uint8_t*>(data_); }

 private:
  void* data_ = nullptr;
};

class CudaStream {
 public:
  CudaStream() { cuda_check(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking)); }
  CudaStream(const CudaStream&) = delete;
  CudaStream& operator=(const CudaStream&) = delete;
  ~CudaStream() { cudaStreamDestroy(stream_); }

  operator cudaStream_t() const { return stream_; }
  void wait() const { cuda_check(cudaStreamSynchronize(stream_)); }

 private:
  cudaStream_t stream_ = nullptr;
};

class CudaEvent {
 public:
  enum class Clock { none, runs };
  explicit CudaEvent(Clock clock = Clock::none) {
    cuda_check(cudaEventCreateWithFlags(
        &event_, clock == Clock::runs ? cudaEventDefault : cudaEventDisableTiming));
  }
  CudaEvent(const CudaEvent&) = delete;
  CudaEvent& operator=(const CudaEvent&) = delete;
  ~CudaEvent() { cudaEventDestroy(event_); }

  void record(cudaStream_t stream) const { cuda_check(cudaEventRecord(event_, stream)); }
  void wait() const { cuda_check(cudaEventSynchronize(event_)); }
  /// Both have a clock, and have happened.
  double us_since(const CudaEvent& earlier) const {
    float ms = 0;
    cuda_check(cudaEventElapsedTime(&ms, earlier.event_, event_));
    return ms * 1e3;
  }

 private:
  cudaEvent_t event_ = nullptr;
};

}  // namespace gauntlet
