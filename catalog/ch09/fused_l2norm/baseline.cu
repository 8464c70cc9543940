// A kernel per operation over all rows: squares, then one over the root of their sums, then the
// product with it.
#include <cuda_runtime.h>

#include "catalog/ch09/fused_l2norm/pair.h"
#include "core/cuda/check.h"
#include "lab/author/side.h"

namespace gauntlet::ch09::fused_l2norm::cuda {
namespace {

constexpr int kThreads = 256;
constexpr int kWarps = kThreads / 32;

__device__ __forceinline__ float4 load(const float* from) {
  return *reinterpret_cast<const float4*>(from);
}

// One block per row, four words per thread and turn, in all three.

__global__ void __launch_bounds__(kThreads) square(Params p) {
  const std::int64_t first = std::int64_t{blockIdx.x} * p.columns;
  for (std::int64_t i = 4 * threadIdx.x; i < p.columns; i += 4 * kThreads) {
    const float4 x = load(p.in + first + i);
    *reinterpret_cast<float4*>(p.squares + first + i) =
        make_float4(x.x * x.x, x.y * x.y, x.z * x.z, x.w * x.w);
  }
}

__global__ void __launch_bounds__(kThreads) sum(Params p) {
  __shared__ float partial[kWarps];
  const std::int64_t first = std::int64_t{blockIdx.x} * p.columns;
  float sum = 0;
  for (std::int64_t i = 4 * threadIdx.x; i < p.columns; i += 4 * kThreads) {
    const float4 x = load(p.squares + first + i);
    sum += (x.x + x.y) + (x.z + x.w);
  }
  for (int offset = 16; offset > 0; offset /= 2) sum += __shfl_xor_sync(~0u, sum, offset);
  if (threadIdx.x % 32 == 0) partial[threadIdx.x / 32] = sum;
  __syncthreads();
  if (threadIdx.x > 0) return;
  float all = 0;
  for (float of_warp : partial) all += of_warp;
  p.scales[blockIdx.x] = rsqrtf(all);
}

__global__ void __launch_bounds__(kThreads) scale(Params p) {
  const std::int64_t first = std::int64_t{blockIdx.x} * p.columns;
  const float scale = p.scales[blockIdx.x];
  for (std::int64_t i = 4 * threadIdx.x; i < p.columns; i += 4 * kThreads) {
    const float4 x = load(p.in + first + i);
    *reinterpret_cast<float4*>(p.out + first + i) =
        make_float4(x.x * scale, x.y * scale, x.z * scale, x.w * scale);
  }
}

}  // namespace

lab::Side baseline(const Params& p, const lab::Cuda& cuda) {
  return [p, stream = cuda.stream] {
    const auto blocks = static_cast<unsigned>(p.rows);
    square<<<blocks, kThreads, 0, stream>>>(p);
    sum<<<blocks, kThreads, 0, stream>>>(p);
    scale<<<blocks, kThreads, 0, stream>>>(p);
    cuda_check(cudaGetLastError());
  };
}

}  // namespace gauntlet::ch09::fused_l2norm::cuda
