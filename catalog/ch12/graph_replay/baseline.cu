// Every kernel is launched by itself, as many as there are, in each step.
#include <cuda_runtime.h>

#include "catalog/ch12/graph_replay/pair.h"
#include "core/affine_rounds.h"
#include "core/cuda/check.h"
#include "lab/author/side.h"

namespace gauntlet::ch12::graph_replay::cuda {
namespace {

constexpr int kThreads = 256;

__global__ void __launch_bounds__(kThreads) round(const std::uint32_t* from, std::uint32_t* to,
                                                  std::int64_t words, const std::uint32_t* factor) {
  const std::int64_t i = std::int64_t{blockIdx.x} * kThreads + threadIdx.x;
  if (i < words) to[i] = affine_round(from[i], *factor);
}

void launch_all(const Params& p, cudaStream_t stream) {
  const auto blocks = static_cast<unsigned>((p.words + kThreads - 1) / kThreads);
  for (std::int64_t kernel = 0; kernel < p.kernels; ++kernel) {
    round<<<blocks, kThreads, 0, stream>>>(kernel == 0 ? p.in : p.out, p.out, p.words,
                                           p.factor + kernel);
    cuda_check(cudaGetLastError());
  }
}

}  // namespace

lab::Side baseline(const Params& p, const lab::Cuda& cuda) {
  return [p, stream = cuda.stream] { launch_all(p, stream); };
}

}  // namespace gauntlet::ch12::graph_replay::cuda
