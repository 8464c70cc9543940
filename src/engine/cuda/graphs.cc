#include "engine/cuda/graphs.h"

#include <algorithm>

namespace gauntlet::engine {

void GraphCache::launch(const StepShape& shape, cudaStream_t stream,
                        const std::function<void(cudaStream_t)>& work) {
  auto found = graphs_.find(shape);
  if (found == graphs_.end()) {
    if (graphs_.size() >= kMostGraphs) {
      graphs_.erase(std::min_element(graphs_.begin(), graphs_.end(), [](auto& a, auto& b) {
        return a.second.used < b.second.used;
      }));
    }
    cuda_check(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
    cudaGraph_t captured = nullptr;
    try {
      work(stream);
    } catch (...) {
      cudaStreamEndCapture(stream, &captured);
      cudaGraphDestroy(captured);
      throw;
    }
    cuda_check(cudaStreamEndCapture(stream, &captured));
    cudaGraphExec_t graph = nullptr;
    const cudaError_t status = cudaGraphInstantiate(&graph, captured, 0);
    cudaGraphDestroy(captured);
    cuda_check(status);
    found = graphs_.emplace(shape, Entry{.graph = Graph(graph)}).first;
  }
  found->second.used = ++clock_;
  cuda_check(cudaGraphLaunch(found->second.graph.get(), stream));
}

}  // namespace gauntlet::engine
