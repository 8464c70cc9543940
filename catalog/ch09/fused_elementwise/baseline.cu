// A kernel per operation: four passes, three of them over what the one before has just written.
#include <cuda_runtime.h>

#include "catalog/ch09/fused_elementwise/pair.h"
#include "core/cuda/check.h"
#include "lab/author/side.h"

namespace gauntlet::ch09::fused_elementwise::cuda {
namespace {

constexpr int kThreads = 256;

/// One block per row, four words per thread and turn.
template <class Operation>
__device__ __forceinline__ void for_row(const Params& p, const Operation& operation) {
  const std::int64_t first = std::int64_t{blockIdx.x} * p.columns;
  for (std::int64_t i = 4 * threadIdx.x; i < p.columns; i += 4 * kThreads) operation(first + i, i);
}

__device__ __forceinline__ float4 load(const float* from) {
  return *reinterpret_cast<const float4*>(from);
}
__device__ __forceinline__ void store(float* to, float4 v) { *reinterpret_cast<float4*>(to) = v; }

__global__ void __launch_bounds__(kThreads) scale(Params p) {
  for_row(p, [&](std::int64_t at, std::int64_t column) {
    const float4 x = load(p.in + at), s = load(p.scale + column);
    store(p.out + at, make_float4(x.x * s.x, x.y * s.y, x.z * s.z, x.w * s.w));
  });
}

__global__ void __launch_bounds__(kThreads) add_bias(Params p) {
  for_row(p, [&](std::int64_t at, std::int64_t column) {
    const float4 x = load(p.out + at), b = load(p.bias + column);
    store(p.out + at, make_float4(x.x + b.x, x.y + b.y, x.z + b.z, x.w + b.w));
  });
}

__global__ void __launch_bounds__(kThreads) rectify(Params p) {
  for_row(p, [&](std::int64_t at, std::int64_t) {
    const float4 x = load(p.out + at);
    store(p.out + at, make_float4(fmaxf(x.x, 0), fmaxf(x.y, 0), fmaxf(x.z, 0), fmaxf(x.w, 0)));
  });
}

__global__ void __launch_bounds__(kThreads) add_residual(Params p) {
  for_row(p, [&](std::int64_t at, std::int64_t) {
    const float4 x = load(p.out + at), r = load(p.residual + at);
    store(p.out + at, make_float4(x.x + r.x, x.y + r.y, x.z + r.z, x.w + r.w));
  });
}

}  // namespace

lab::Side baseline(const Params& p, const lab::Cuda& cuda) {
  return [p, stream = cuda.stream] {
    const auto blocks = static_cast<unsigned>(p.rows);
    scale<<<blocks, kThreads, 0, stream>>>(p);
    add_bias<<<blocks, kThreads, 0, stream>>>(p);
    rectify<<<blocks, kThreads, 0, stream>>>(p);
    add_residual<<<blocks, kThreads, 0, stream>>>(p);
    cuda_check(cudaGetLastError());
  };
}

}  // namespace gauntlet::ch09::fused_elementwise::cuda
