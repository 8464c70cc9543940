// A grid-stride loop over float4: a warp's load asks for 512 bytes.
#include <cuda_runtime.h>

#include "catalog/ch07/vector32_copy/pair.h"
#include "core/cuda/check.h"
#include "lab/author/side.h"

namespace gauntlet::ch07::vector32_copy::cuda {
namespace {

constexpr int kThreads = 256;
constexpr int kLanes = sizeof(float4) / sizeof(float);

__global__ void __launch_bounds__(kThreads, 2048 / kThreads) copy_float4s(Params p) {
  const auto* in = reinterpret_cast<const float4*>(p.in);
  auto* out = reinterpret_cast<float4*>(p.out);
  const std::int64_t thread = std::int64_t{blockIdx.x} * kThreads + threadIdx.x;
  const std::int64_t threads = std::int64_t{gridDim.x} * kThreads;
  const std::int64_t vectors = p.count / kLanes;
  for (std::int64_t i = thread; i < vectors; i += threads) out[i] = in[i];

  const std::int64_t rest = vectors * kLanes + thread;
  if (rest < p.count) p.out[rest] = p.in[rest];
}

}  // namespace

lab::Side baseline(const Params& p, const lab::Cuda& cuda) {
  // As many threads as the GPU holds at once.
  const auto blocks = static_cast<unsigned>(cuda.num_sms * (cuda.max_threads_per_sm / kThreads));
  return [p, blocks, stream = cuda.stream] {
    copy_float4s<<<blocks, kThreads, 0, stream>>>(p);
    cuda_check(cudaGetLastError());
  };
}

}  // namespace gauntlet::ch07::vector32_copy::cuda
