// Captured steps, by shape: the first step of a shape is captured, later ones are replayed.
#pragma once
#include <cuda_runtime_api.h>

#include <functional>
#include <map>
#include <memory>

#include "core/cuda/check.h"
#include "engine/cuda/step_inputs.h"

namespace gauntlet::engine {

class GraphCache {
 public:
  /// Launches `work` as one graph.
  void launch(const StepShape& shape, cudaStream_t stream,
              const std::function<void(cudaStream_t)>& work);
  std::size_t size() const { return graphs_.size(); }

 private:
  struct Destroy {
    void operator()(cudaGraphExec_t graph) const { cudaGraphExecDestroy(graph); }
  };
  using Graph = std::unique_ptr<std::remove_pointer_t<cudaGraphExec_t>, Destroy>;
  struct Entry {
    Graph graph;
    std::uint64_t used = 0;
  };
  /// A graph of two hundred kernels takes a megabyte or two on the device.
  static constexpr std::size_t kMostGraphs = 128;

  std::map<StepShape, Entry> graphs_;
  std::uint64_t clock_ = 0;
};

}  // namespace gauntlet::engine
