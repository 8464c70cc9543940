// The honest work on a GPU.
#pragma once
#include <cuda_runtime.h>

#include <memory>

#include "core/cuda/check.h"
#include "tests/lies/params.h"

namespace gauntlet::lies {

inline constexpr int kThreads = 256;

static __global__ void scale_kernel(Params p) {
  const std::int64_t i = std::int64_t{blockIdx.x} * kThreads + threadIdx.x;
  if (i < p.count) p.out[i] = 2.0f * p.in[i];
}

inline unsigned blocks_for(std::int64_t count) {
  return static_cast<unsigned>((count + kThreads - 1) / kThreads);
}

inline void scale(const Params& p, cudaStream_t stream, int passes = 1) {
  for (int pass = 0; pass < passes; ++pass) {
    scale_kernel<<<blocks_for(p.count), kThreads, 0, stream>>>(p);
  }
  cuda_check(cudaGetLastError());
}

/// A stream that the events around a sample do not see.
inline std::shared_ptr<CUstream_st> own_stream() {
  cudaStream_t own = nullptr;
  cuda_check(cudaStreamCreateWithFlags(&own, cudaStreamNonBlocking));
  return {own, [](cudaStream_t s) { cudaStreamDestroy(s); }};
}

}  // namespace gauntlet::lies
