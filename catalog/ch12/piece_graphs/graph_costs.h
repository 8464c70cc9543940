// What graphs cost before they run: to capture, to instantiate, and to launch for the first time.
#pragma once
#include <cuda_runtime_api.h>

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "core/cuda/graph.h"
#include "lab/author/counted.h"

namespace gauntlet::ch12::piece_graphs {

/// Makes graphs, and says how many nodes they have and how long it took.
class GraphMaker {
 public:
  template <class Work>
  CudaGraphExec make(cudaStream_t stream, const Work& work) {
    const auto begin = Clock::now();
    const CudaGraph captured(stream, work);
    const auto at_captured = Clock::now();
    CudaGraphExec exec(captured);
    const auto at_instantiated = Clock::now();
    capture_us_ += us(at_captured - begin);
    instantiate_us_ += us(at_instantiated - at_captured);
    nodes_ += captured.num_nodes();
    return exec;
  }
  /// Launches a graph that was not launched before, and waits for it.
  void launch_first(const CudaGraphExec& graph, cudaStream_t stream) {
    const auto begin = Clock::now();
    graph.launch(stream);
    cuda_check(cudaStreamSynchronize(stream));
    first_launch_us_ += us(Clock::now() - begin);
  }

  /// Of all graphs so far.
  std::map<std::string, double> facts() const {
    return {{"capture_us", capture_us_},
            {"instantiate_us", instantiate_us_},
            {"first_launch_us", first_launch_us_}};
  }
  std::uint64_t nodes() const { return nodes_; }

 private:
  using Clock = std::chrono::steady_clock;
  static double us(Clock::duration time) {
    return std::chrono::duration<double, std::micro>(time).count();
  }

  double capture_us_ = 0, instantiate_us_ = 0, first_launch_us_ = 0;
  std::uint64_t nodes_ = 0;
};

/// "nodes_made": nodes of the graphs that a run captures and instantiates, as the graphs say.
inline lab::Count nodes_made(const std::shared_ptr<GraphMaker>& maker) {
  return {.name = "nodes_made",
          .total = [maker] { return static_cast<double>(maker->nodes()); },
          .per = {}};
}

}  // namespace gauntlet::ch12::piece_graphs
