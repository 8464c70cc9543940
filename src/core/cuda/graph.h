// CUDA graphs, and what runs them, that free themselves.
#pragma once
#include <cuda_runtime_api.h>

#include <cstddef>
#include <utility>

#include "core/cuda/check.h"

namespace gauntlet {

class CudaGraph {
 public:
  /// Without nodes.
  CudaGraph() { cuda_check(cudaGraphCreate(&graph_, 0)); }
  /// What `work` gives the stream, which does nothing of it now.
  template <class Work>
  CudaGraph(cudaStream_t stream, const Work& work) {
    cuda_check(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
    try {
      work();
    } catch (...) {
      cudaStreamEndCapture(stream, &graph_);
      cudaGraphDestroy(graph_);
      throw;
    }
    cuda_check(cudaStreamEndCapture(stream, &graph_));
  }
  CudaGraph(const CudaGraph&) = delete;
  CudaGraph& operator=(const CudaGraph&) = delete;
  ~CudaGraph() { cudaGraphDestroy(graph_); }

  operator cudaGraph_t() const { return graph_; }

  std::size_t num_nodes() const {
    std::size_t count = 0;
    cuda_check(cudaGraphGetNodes(graph_, nullptr, &count));
    return count;
  }

 private:
  cudaGraph_t graph_ = nullptr;
};

class CudaGraphExec {
 public:
  explicit CudaGraphExec(cudaGraph_t graph, unsigned long long flags = 0) {
    cuda_check(cudaGraphInstantiate(&exec_, graph, flags));
  }
  CudaGraphExec(CudaGraphExec&& other) noexcept : exec_(std::exchange(other.exec_, nullptr)) {}
  CudaGraphExec& operator=(CudaGraphExec&& other) noexcept {
    std::swap(exec_, other.exec_);
    return *this;
  }
  ~CudaGraphExec() {
    if (exec_ != nullptr) cudaGraphExecDestroy(exec_);
  }

  operator cudaGraphExec_t() const { return exec_; }

  /// Takes the device's memory now, so that the first launch is like any other.
  void upload(cudaStream_t stream) const { cuda_check(cudaGraphUpload(exec_, stream)); }
  void launch(cudaStream_t stream) const { cuda_check(cudaGraphLaunch(exec_, stream)); }

 private:
  cudaGraphExec_t exec_ = nullptr;
};

}  // namespace gauntlet
