// A filter bank, one thread per position, a sum for each filter, so that the signal is read once.
// For 80 filters that is the kernel to write; 288 sums are more than the 255 registers of a thread.

// subject: register spilling
#include <cuda_runtime.h>

#include "catalog/ch08/register_pressure/pair.h"
#include "core/cuda/check.h"
#include "lab/author/side.h"

namespace gauntlet::ch08::register_pressure::cuda {
namespace {

constexpr int kThreads = 256;
static_assert(kFilters % 4 == 0, "filters are read four at a time");

__global__ void __launch_bounds__(kThreads) filter_bank(Params p) {
  const std::int64_t position = std::int64_t{blockIdx.x} * kThreads + threadIdx.x;
  if (position >= p.positions) return;
  const float* signal = p.signal + position;
  float* out = p.out + position;
  float sum[kFilters] = {};
  const float* weights = p.filters;
#pragma unroll 1
  for (int tap = 0; tap < p.taps; ++tap) {
    const float x = signal[tap];
#pragma unroll
    for (int filter = 0; filter < kFilters; filter += 4) {
      const float4 w = *reinterpret_cast<const float4*>(weights + filter);
      sum[filter] += w.x * x;
      sum[filter + 1] += w.y * x;
      sum[filter + 2] += w.z * x;
      sum[filter + 3] += w.w * x;
    }
    weights += kFilters;
  }
#pragma unroll
  for (int filter = 0; filter < kFilters; ++filter) {
    *out = sum[filter];
    out += p.positions;
  }
}

}  // namespace

lab::Side baseline(const Params& p, const lab::Cuda& cuda) {
  cudaFuncAttributes attributes;
  cuda_check(cudaFuncGetAttributes(&attributes, filter_bank));
  return {[p, stream = cuda.stream] {
            const auto blocks = static_cast<unsigned>((p.positions + kThreads - 1) / kThreads);
            filter_bank<<<blocks, kThreads, 0, stream>>>(p);
            cuda_check(cudaGetLastError());
          },
          {{"registers", attributes.numRegs},
           {"local_bytes", static_cast<double>(attributes.localSizeBytes)}}};
}

}  // namespace gauntlet::ch08::register_pressure::cuda
