// One graph for all rounds: the router tells a SWITCH node which expert and an IF node whether to
// correct, and the host has no part in it.
#include <cuda_runtime.h>

#include <memory>
#include <type_traits>

#include "catalog/ch12/conditional_graph/pair.h"
#include "core/affine_rounds.h"
#include "core/cuda/check.h"
#include "core/cuda/graph.h"
#include "core/cuda/stream_waits.h"
#include "lab/author/counted.h"

namespace gauntlet::ch12::conditional_graph::cuda {
namespace {

constexpr int kThreads = 256;

__global__ void route(const std::uint32_t* state, cudaGraphConditionalHandle expert,
                      cudaGraphConditionalHandle correct) {
  const Choice choice = choose(state);
  cudaGraphSetConditional(expert, choice.expert);
  cudaGraphSetConditional(correct, choice.correct);
}

__global__ void __launch_bounds__(kThreads)
    apply_expert(const std::uint32_t* from, std::uint32_t* to, std::int64_t words,
                 const std::uint32_t* factor) {
  const std::int64_t i = std::int64_t{blockIdx.x} * kThreads + threadIdx.x;
  if (i < words) to[i] = affine_round(from[i], *factor);
}

__global__ void __launch_bounds__(kThreads) correct(std::uint32_t* state, std::int64_t words) {
  const std::int64_t i = std::int64_t{blockIdx.x} * kThreads + threadIdx.x;
  if (i < words) state[i] = corrected(state[i]);
}

unsigned blocks_of(const Params& p) {
  return static_cast<unsigned>((p.words + kThreads - 1) / kThreads);
}

/// What a round finds.
const std::uint32_t* state_before(const Params& p, std::int64_t round) {
  return round == 0 ? p.in : p.out;
}

/// Appends nodes to a graph, each after the one before.
class Chain {
 public:
  explicit Chain(cudaGraph_t graph) : graph_(graph) {}

  template <class... Parameters>
  void add_kernel(void (*kernel)(Parameters...), unsigned blocks, unsigned threads,
                  std::type_identity_t<Parameters>... arguments) {
    void* pointers[] = {&arguments...};
    cudaGraphNodeParams node = {};
    node.type = cudaGraphNodeTypeKernel;
    node.kernel.func = reinterpret_cast<void*>(kernel);
    node.kernel.gridDim = dim3(blocks);
    node.kernel.blockDim = dim3(threads);
    node.kernel.kernelParams = pointers;
    add(node);
  }

  /// A handle that is 0 again whenever the graph is launched.
  cudaGraphConditionalHandle handle() const {
    cudaGraphConditionalHandle handle{};
    cuda_check(cudaGraphConditionalHandleCreate(&handle, graph_, 0, cudaGraphCondAssignDefault));
    return handle;
  }
  /// Graphs of which the value chooses one: a SWITCH has one for each value, an IF one for all but
  /// zero.
  cudaGraph_t* add_conditional(cudaGraphConditionalHandle handle, cudaGraphConditionalNodeType type,
                               unsigned graphs) {
    cudaGraphNodeParams node = {};
    node.type = cudaGraphNodeTypeConditional;
    node.conditional.handle = handle;
    node.conditional.type = type;
    node.conditional.size = graphs;
    add(node);
    return node.conditional.phGraph_out;
  }

 private:
  void add(cudaGraphNodeParams& node) {
    cudaGraphNode_t added = nullptr;
    cuda_check(cudaGraphAddNode(&added, graph_, &last_, nullptr, last_ == nullptr ? 0 : 1, &node));
    last_ = added;
  }

  cudaGraph_t graph_;
  cudaGraphNode_t last_ = nullptr;
};

void add_round(Chain& chain, const Params& p, std::int64_t round) {
  const std::uint32_t* before = state_before(p, round);
  const auto expert = chain.handle(), correction = chain.handle();
  chain.add_kernel(route, 1, 1, before, expert, correction);
  cudaGraph_t* experts = chain.add_conditional(expert, cudaGraphCondTypeSwitch, kExperts);
  for (int choice = 0; choice < kExperts; ++choice) {
    Chain(experts[choice])
        .add_kernel(apply_expert, blocks_of(p), kThreads, before, p.out, p.words,
                    p.factor + round * kExperts + choice);
  }
  cudaGraph_t* corrections = chain.add_conditional(correction, cudaGraphCondTypeIf, 1);
  Chain(corrections[0]).add_kernel(correct, blocks_of(p), kThreads, p.out, p.words);
}

}  // namespace

lab::Side optimized(const Params& p, const lab::Cuda& cuda) {
  const auto waits = std::make_shared<StreamWaits>();
  const CudaGraph graph;
  Chain chain(graph);
  for (std::int64_t round = 0; round < p.rounds; ++round) add_round(chain, p, round);
  const auto exec = std::make_shared<CudaGraphExec>(graph);
  exec->upload(cuda.stream);
  return lab::counted(
      {.name = "stream_waits", .total = [waits] { return static_cast<double>(waits->count()); }},
      [exec, stream = cuda.stream] { exec->launch(stream); });
}

}  // namespace gauntlet::ch12::conditional_graph::cuda
