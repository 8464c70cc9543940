// Graphs that are made of one and the same captured graph, and how often.
#pragma once
#include <cuda_runtime_api.h>

#include <cstdint>
#include <memory>

#include "core/cuda/graph.h"
#include "lab/author/counted.h"

namespace gauntlet::ch12::graph_update {

class Instantiations {
 public:
  CudaGraphExec instantiate(const CudaGraph& graph) {
    ++count_;
    return CudaGraphExec(graph);
  }
  std::uint64_t count() const { return count_; }

 private:
  std::uint64_t count_ = 0;
};

/// "instantiations" of a run.
inline lab::Count instantiations(const std::shared_ptr<Instantiations>& made) {
  return {.name = "instantiations",
          .total = [made] { return static_cast<double>(made->count()); },
          .per = {}};
}

/// The node that nothing comes before.
inline cudaGraphNode_t first_node(const CudaGraph& graph) {
  cudaGraphNode_t node = nullptr;
  std::size_t count = 1;
  cuda_check(cudaGraphGetRootNodes(graph, &node, &count));
  check(count == 1, "the graph begins with one node");
  return node;
}

}  // namespace gauntlet::ch12::graph_update
