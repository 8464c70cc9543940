// Every step has a graph instantiated with its parameters.
#include <cuda_runtime.h>

#include <memory>
#include <vector>

#include "catalog/ch12/graph_update/pair.h"
#include "catalog/ch12/graph_update/step_graph.h"
#include "core/affine_rounds.h"
#include "core/cuda/check.h"
#include "core/cuda/graph.h"
#include "lab/author/counted.h"

namespace gauntlet::ch12::graph_update::cuda {
namespace {

constexpr int kThreads = 256;

__global__ void __launch_bounds__(kThreads)
    take_up(const std::uint32_t* in, std::uint32_t* state, std::int64_t words, std::uint32_t keep) {
  const std::int64_t i = std::int64_t{blockIdx.x} * kThreads + threadIdx.x;
  if (i < words) state[i] = keep * state[i] + in[i];
}

__global__ void __launch_bounds__(kThreads)
    round(std::uint32_t* state, std::int64_t words, const std::uint32_t* factor) {
  const std::int64_t i = std::int64_t{blockIdx.x} * kThreads + threadIdx.x;
  if (i < words) state[i] = affine_round(state[i], *factor);
}

unsigned blocks_of(const Params& p) {
  return static_cast<unsigned>((p.words + kThreads - 1) / kThreads);
}

void launch_step(const Params& p, cudaStream_t stream) {
  take_up<<<blocks_of(p), kThreads, 0, stream>>>(p.in, p.out, p.words, 0);
  for (std::int64_t kernel = 0; kernel < p.kernels - 1; ++kernel) {
    round<<<blocks_of(p), kThreads, 0, stream>>>(p.out, p.words, p.factor + kernel);
  }
  cuda_check(cudaGetLastError());
}

/// What the first kernel of a step is launched with, in the form that graphs take.
struct FirstKernel {
  FirstKernel(const Params& p, std::int64_t step)
      : in(p.in + step * p.words), state(p.out), words(p.words), keep(step > 0 ? 1 : 0) {
    node.func = reinterpret_cast<void*>(take_up);
    node.gridDim = dim3(blocks_of(p));
    node.blockDim = dim3(kThreads);
    node.kernelParams = arguments;
  }
  FirstKernel(const FirstKernel&) = delete;
  FirstKernel& operator=(const FirstKernel&) = delete;

  const std::uint32_t* in;
  std::uint32_t* state;
  std::int64_t words;
  std::uint32_t keep;
  void* arguments[4] = {&in, &state, &words, &keep};
  cudaKernelNodeParams node = {};
};

}  // namespace

lab::Side baseline(const Params& p, const lab::Cuda& cuda) {
  const auto made = std::make_shared<Instantiations>();
  const auto graph = std::make_shared<CudaGraph>(cuda.stream, [&] { launch_step(p, cuda.stream); });
  const auto first = first_node(*graph);
  // Graphs of the run before: a graph that is being launched is not destroyed.
  const auto launched = std::make_shared<std::vector<CudaGraphExec>>();
  return lab::counted(instantiations(made),
                      [p, made, graph, first, launched, stream = cuda.stream] {
                        launched->clear();
                        for (std::int64_t step = 0; step < p.steps; ++step) {
                          FirstKernel kernel(p, step);
                          cuda_check(cudaGraphKernelNodeSetParams(first, &kernel.node));
                          launched->push_back(made->instantiate(*graph));
                          launched->back().launch(stream);
                        }
                      });
}

}  // namespace gauntlet::ch12::graph_update::cuda
