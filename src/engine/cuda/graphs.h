// Captured steps, by shape: as many as a budget of memory holds are captured at start, others when
// they first come; then they are replayed.
#pragma once
#include <cuda_runtime_api.h>

#include <functional>
#include <map>
#include <memory>

#include "core/cuda/check.h"
#include "engine/cuda/step_inputs.h"

namespace gauntlet::engine::cuda {

class GraphCache {
 public:
  using Work = std::function<void(cudaStream_t)>;

  /// Of device memory, for the graphs captured ahead: one of two hundred kernels takes a megabyte
  /// or two.
  static constexpr std::int64_t kBudgetBytes = std::int64_t{256} << 20;

  /// What ends the budget: memory that is gone, or a number of graphs. Ranks that share a GPU see
  /// each other's memory go, and each would capture as many as chance has it.
  enum class Budget { measured, counted };

  explicit GraphCache(Budget budget = Budget::measured) : budget_(budget) {}

  /// Captures `work` ahead of its first launch. False, with nothing done, once the budget is spent.
  bool prepare(const StepShape& shape, cudaStream_t stream, const Work& work);
  /// Launches `work` as one graph.
  void launch(const StepShape& shape, cudaStream_t stream, const Work& work);
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
  static constexpr std::size_t kMostGraphs = 128;
  static constexpr std::size_t kCountedGraphs = 64;  // of four megabytes in the same budget

  bool has_room();
  Entry& capture(const StepShape& shape, cudaStream_t stream, const Work& work);

  Budget budget_;
  std::map<StepShape, Entry> graphs_;
  std::uint64_t clock_ = 0;
  std::int64_t free_at_first_ = 0;  // bytes of the device before anything was prepared
};

}  // namespace gauntlet::engine::cuda
