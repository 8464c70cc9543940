// A layer's kernel starts while the one in front ends, and has its weights by then.
#include <cuda_runtime.h>

#include <memory>
#include <vector>

#include "catalog/ch12/programmatic_launch/pair.h"
#include "core/affine_rounds.h"
#include "core/cuda/check.h"
#include "core/cuda/graph.h"
#include "lab/author/side.h"
#include "ptx/grid_dependency.cuh"

namespace gauntlet::ch12::programmatic_launch::cuda {
namespace {

constexpr int kThreads = 256;
static_assert(kBlockWords == 4 * kThreads);

// What the launch says: 1 where a layer may start before the one in front has ended.
constexpr int kMayStartEarly = 1;

__global__ void __launch_bounds__(kThreads)
    run_layer(const std::uint32_t* from, std::uint32_t* to, const std::uint32_t* weights) {
  ptx::grid_dependency_launch();
  const std::int64_t at = std::int64_t{blockIdx.x} * kThreads + threadIdx.x;
  const uint4 w = reinterpret_cast<const uint4*>(weights)[at];
  ptx::grid_dependency_wait();  // from here on the layer in front has ended
  const uint4 x = reinterpret_cast<const uint4*>(from)[at];
  reinterpret_cast<uint4*>(to)[at] = make_uint4(affine_round(x.x, w.x), affine_round(x.y, w.y),
                                                affine_round(x.z, w.z), affine_round(x.w, w.w));
}

void launch_all(const Params& p, cudaStream_t stream) {
  cudaLaunchAttribute early = {};
  early.id = cudaLaunchAttributeProgrammaticStreamSerialization;
  early.val.programmaticStreamSerializationAllowed = kMayStartEarly;
  cudaLaunchConfig_t config = {};
  config.gridDim = dim3(static_cast<unsigned>(p.words / kBlockWords));
  config.blockDim = dim3(kThreads);
  config.stream = stream;
  config.attrs = &early;
  for (std::int64_t layer = 0; layer < p.layers; ++layer) {
    config.numAttrs = layer == 0 ? 0 : 1;  // the first has nobody in front
    const std::uint32_t* from = layer == 0 ? p.in : p.out;
    cuda_check(cudaLaunchKernelEx(&config, run_layer, from, p.out, p.weights + layer * p.words));
  }
}

/// How many of a graph's nodes may start before the one in front has ended.
double programmatic_edges(const CudaGraph& graph) {
  std::size_t count = 0;
  cuda_check(cudaGraphGetEdges(graph, nullptr, nullptr, nullptr, &count));
  std::vector<cudaGraphNode_t> from(count), to(count);
  std::vector<cudaGraphEdgeData> edges(count);
  cuda_check(cudaGraphGetEdges(graph, from.data(), to.data(), edges.data(), &count));
  double programmatic = 0;
  for (const cudaGraphEdgeData& edge : edges) {
    if (edge.type == cudaGraphDependencyTypeProgrammatic) ++programmatic;
  }
  return programmatic;
}

}  // namespace

lab::Side optimized(const Params& p, const lab::Cuda& cuda) {
  const CudaGraph captured(cuda.stream, [&] { launch_all(p, cuda.stream); });
  const auto graph = std::make_shared<CudaGraphExec>(captured);
  graph->upload(cuda.stream);
  return {[graph, stream = cuda.stream] { graph->launch(stream); },
          {{"programmatic_edges", programmatic_edges(captured)}}};
}

}  // namespace gauntlet::ch12::programmatic_launch::cuda
