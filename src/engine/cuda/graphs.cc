#include "engine/cuda/graphs.h"

#include <algorithm>

namespace gauntlet::engine::cuda {
namespace {

std::int64_t free_device_bytes() {
  std::size_t free = 0, all = 0;
  cuda_check(cudaMemGetInfo(&free, &all));
  return static_cast<std::int64_t>(free);
}

}  // namespace

bool GraphCache::has_room() {
  if (budget_ == Budget::counted) return graphs_.size() < kCountedGraphs;
  const std::int64_t free = free_device_bytes();
  if (graphs_.empty()) free_at_first_ = free;
  return graphs_.size() < kMostGraphs && free_at_first_ - free < kBudgetBytes;
}

bool GraphCache::prepare(const StepShape& shape, cudaStream_t stream, const Work& work) {
  if (!has_room()) return false;
  // Uploaded, so that its memory is taken now and its first launch is like any other.
  cuda_check(cudaGraphUpload(capture(shape, stream, work).graph.get(), stream));
  return true;
}

void GraphCache::launch(const StepShape& shape, cudaStream_t stream, const Work& work) {
  const auto found = graphs_.find(shape);
  Entry& entry = found != graphs_.end() ? found->second : capture(shape, stream, work);
  entry.used = ++clock_;
  cuda_check(cudaGraphLaunch(entry.graph.get(), stream));
}

GraphCache::Entry& GraphCache::capture(const StepShape& shape, cudaStream_t stream,
                                       const Work& work) {
  if (graphs_.size() >= kMostGraphs) {
    graphs_.erase(std::min_element(graphs_.begin(), graphs_.end(),
                                   [](auto& a, auto& b) { return a.second.used < b.second.used; }));
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
  return graphs_.emplace(shape, Entry{.graph = Graph(graph)}).first->second;
}

}  // namespace gauntlet::engine::cuda
