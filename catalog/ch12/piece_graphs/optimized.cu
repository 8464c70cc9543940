// A graph for each region, made once; what changes from step to step is launched between them.
#include <cuda_runtime.h>

#include <memory>
#include <vector>

#include "catalog/ch12/piece_graphs/graph_costs.h"
#include "catalog/ch12/piece_graphs/pair.h"
#include "core/affine_rounds.h"
#include "core/cuda/check.h"
#include "core/cuda/graph.h"
#include "lab/author/counted.h"

namespace gauntlet::ch12::piece_graphs::cuda {
namespace {

constexpr int kThreads = 256;

__global__ void __launch_bounds__(kThreads)
    round(std::uint32_t* state, std::int64_t words, const std::uint32_t* factor) {
  const std::int64_t i = std::int64_t{blockIdx.x} * kThreads + threadIdx.x;
  if (i < words) state[i] = affine_round(state[i], *factor);
}

void launch_round(const Params& p, std::int64_t words, std::int64_t layer, std::int64_t kernel,
                  cudaStream_t stream) {
  const auto blocks = static_cast<unsigned>((words + kThreads - 1) / kThreads);
  round<<<blocks, kThreads, 0, stream>>>(p.out, words,
                                         p.factor + layer * (kRegionKernels + 1) + kernel);
  cuda_check(cudaGetLastError());
}

void launch_region(const Params& p, std::int64_t layer, cudaStream_t stream) {
  for (std::int64_t kernel = 0; kernel < kRegionKernels; ++kernel) {
    launch_round(p, p.words, layer, kernel, stream);
  }
}

void launch_changing(const Params& p, std::int64_t step, std::int64_t layer, cudaStream_t stream) {
  launch_round(p, changing_words(p, step), layer, kRegionKernels, stream);
}

/// What the steps of a run start from.
void begin(const Params& p, cudaStream_t stream) {
  cuda_check(cudaMemcpyAsync(p.out, p.in, static_cast<std::size_t>(p.words) * sizeof(*p.out),
                             cudaMemcpyDeviceToDevice, stream));
}

}  // namespace

lab::Side optimized(const Params& p, const lab::Cuda& cuda) {
  const auto maker = std::make_shared<GraphMaker>();
  const auto regions = std::make_shared<std::vector<CudaGraphExec>>();
  for (std::int64_t layer = 0; layer < p.layers; ++layer) {
    regions->push_back(maker->make(cuda.stream, [&] { launch_region(p, layer, cuda.stream); }));
    maker->launch_first(regions->back(), cuda.stream);
  }
  const auto facts = maker->facts();
  lab::Side side = lab::counted(nodes_made(maker), [p, regions, stream = cuda.stream] {
    begin(p, stream);
    for (std::int64_t step = 0; step < p.steps; ++step) {
      for (std::int64_t layer = 0; layer < p.layers; ++layer) {
        (*regions)[static_cast<std::size_t>(layer)].launch(stream);
        launch_changing(p, step, layer, stream);
      }
    }
  });
  side.facts = facts;
  return side;
}

}  // namespace gauntlet::ch12::piece_graphs::cuda
