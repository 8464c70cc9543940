// What tests of kernels do with a GPU: skip by name without one, and move vectors to and fro.
#pragma once
#include <cuda_bf16.h>
#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include <cstring>
#include <vector>

#include "core/cuda/memory.h"

#define GAUNTLET_NEEDS_GPU()                                     \
  do {                                                           \
    int gpus = 0;                                                \
    if (cudaGetDeviceCount(&gpus) != cudaSuccess || gpus == 0) { \
      GTEST_SKIP() << "not tried: there is no CUDA device";      \
    }                                                            \
  } while (false)

namespace gauntlet::kernels::cuda {

template <class T>
class OnDevice {
 public:
  explicit OnDevice(std::size_t count)
      : count_(count), memory_(static_cast<std::int64_t>(count * sizeof(T))) {
    cuda_check(cudaMemset(memory_.data(), 0, count * sizeof(T)));
  }
  explicit OnDevice(const std::vector<T>& values) : OnDevice(values.size()) { write(values); }
  std::size_t bytes() const { return count_ * sizeof(T); }
  T* get() const { return reinterpret_cast<T*>(memory_.data()); }
  template <class As>
  As* as() const {
    return reinterpret_cast<As*>(memory_.data());
  }
  void write(const std::vector<T>& values) {
    cuda_check(cudaMemcpy(memory_.data(), values.data(), bytes(), cudaMemcpyHostToDevice));
  }
  std::vector<T> values() const {
    std::vector<T> result(count_);
    cuda_check(cudaDeviceSynchronize());
    cuda_check(cudaMemcpy(result.data(), memory_.data(), bytes(), cudaMemcpyDeviceToHost));
    return result;
  }

 private:
  std::size_t count_;
  DeviceMemory memory_;
};

inline std::uint16_t bf16_bits(float value) {
  const __nv_bfloat16 half = __float2bfloat16(value);
  std::uint16_t bits;
  std::memcpy(&bits, &half, sizeof(bits));
  return bits;
}

inline float bf16_float(std::uint16_t bits) {
  const std::uint32_t wide = std::uint32_t{bits} << 16;
  float value;
  std::memcpy(&value, &wide, sizeof(value));
  return value;
}

inline const __nv_bfloat16* as_bf16(const OnDevice<std::uint16_t>& values) {
  return reinterpret_cast<const __nv_bfloat16*>(values.get());
}
inline __nv_bfloat16* as_bf16_out(const OnDevice<std::uint16_t>& values) {
  return reinterpret_cast<__nv_bfloat16*>(values.get());
}

}  // namespace gauntlet::kernels::cuda
