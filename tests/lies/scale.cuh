// The honest work on a GPU.
#pragma once
#include <cuda_runtime.h>

#include "core/cuda/check.h"
#include "tests/lies/params.h"

namespace gauntlet::lies {

inline constexpr int kThreads = 256;

static __global__ void scale_kernel(Params p) {
  const std::int64_t i = std::int64_t{blockIdx.x} * kThreads + threadIdx.x;
  if (i < p.count) p.out[i] = 2.0f * p.in[i];
}

inline void scale(const Params& p, cudaStream_t stream, int passes = 1) {
  const auto blocks = static_cast<unsigned>((p.count + kThreads - 1) / kThreads);
  for (int pass = 0; pass < passes; ++pass) scale_kernel<<<blocks, kThreads, 0, stream>>>(p);
  cuda_check(cudaGetLastError());
}

}  // namespace gauntlet::lies
