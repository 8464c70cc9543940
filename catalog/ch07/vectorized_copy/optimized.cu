// A thread per four floats: the same warp's load asks for 512 bytes.
#include <cuda_runtime.h>

#include "catalog/ch07/vectorized_copy/pair.h"
#include "core/cuda/check.h"
#include "lab/author/side.h"

namespace gauntlet::ch07::vectorized_copy::cuda {
namespace {

constexpr int kThreads = 256;
constexpr int kLanes = sizeof(float4) / sizeof(float);
static_assert(kShift % kLanes == 0, "the count is a multiple of kShift");

__global__ void __launch_bounds__(kThreads) copy_float4s(Pass pass, std::int64_t vectors) {
  const std::int64_t i = std::int64_t{blockIdx.x} * kThreads + threadIdx.x;
  if (i >= vectors) return;
  const std::int64_t at = i + pass.shift / kLanes;
  reinterpret_cast<float4*>(pass.to)[i] =
      reinterpret_cast<const float4*>(pass.from)[at < vectors ? at : at - vectors];
}

}  // namespace

lab::Side optimized(const Params& p, const lab::Cuda& cuda) {
  return [p, stream = cuda.stream] {
    const std::int64_t vectors = p.count / kLanes;
    const auto blocks = static_cast<unsigned>((vectors + kThreads - 1) / kThreads);
    for (std::int64_t i = 0; i < p.passes; ++i) {
      copy_float4s<<<blocks, kThreads, 0, stream>>>(pass_of(p, i), vectors);
      cuda_check(cudaGetLastError());
    }
  };
}

}  // namespace gauntlet::ch07::vectorized_copy::cuda
