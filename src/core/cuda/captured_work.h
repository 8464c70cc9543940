// What CUDA says that a stream is given to do: work is captured into a graph, not run, and the
// graph is asked.
#pragma once
#include <cstddef>
#include <functional>
#include <vector>

#include "core/cuda/check.h"

namespace gauntlet {

/// How many copies of memory `work` hands to the stream, which it may not wait for.
inline int captured_copies(cudaStream_t stream, const std::function<void()>& work) {
  cuda_check(cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed));
  work();
  cudaGraph_t graph = nullptr;
  cuda_check(cudaStreamEndCapture(stream, &graph));
  std::size_t count = 0;
  cuda_check(cudaGraphGetNodes(graph, nullptr, &count));
  std::vector<cudaGraphNode_t> nodes(count);
  if (count > 0) cuda_check(cudaGraphGetNodes(graph, nodes.data(), &count));
  int copies = 0;
  for (const cudaGraphNode_t node : nodes) {
    cudaGraphNodeType type{};
    cuda_check(cudaGraphNodeGetType(node, &type));
    copies += type == cudaGraphNodeTypeMemcpy ? 1 : 0;
  }
  cuda_check(cudaGraphDestroy(graph));
  return copies;
}

}  // namespace gauntlet
