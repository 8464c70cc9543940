// A side whose feeders and page-locked slots are on one of the two nodes: the sides differ by
// which.
#pragma once
#include <cuda_runtime_api.h>

#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "catalog/ch03/gpu_numa_affinity/feeders.h"
#include "core/cuda/memory.h"
#include "core/machine/gpu_places.h"
#include "core/os/pages.h"
#include "lab/author/side.h"

namespace gauntlet::ch03::gpu_numa_affinity::cuda {

/// Page-locked memory of one node. It is registered after it was bound: locked pages cannot move.
class NodePages {
 public:
  NodePages(std::int64_t bytes, int node) : pages_(bytes) {
    const auto bound = bind_memory(pages_.data(), pages_.bytes(), node);
    if (!bound) fail(bound.error().message);
    cuda_check(cudaHostRegister(pages_.data(), static_cast<std::size_t>(pages_.bytes()),
                                cudaHostRegisterDefault));
  }
  ~NodePages() { cudaHostUnregister(pages_.data()); }
  NodePages(const NodePages&) = delete;
  NodePages& operator=(const NodePages&) = delete;

  std::uint64_t* data() const { return reinterpret_cast<std::uint64_t*>(pages_.data()); }

 private:
  HugePages pages_;
};

/// Copies in the stream of the side.
class StreamLink final : public Link {
 public:
  StreamLink(std::int64_t slots, cudaStream_t stream)
      : stream_(stream), left_(static_cast<std::size_t>(slots)) {
    cuda_check(cudaGetDevice(&device_));
  }
  void begin_thread() override { cuda_check(cudaSetDevice(device_)); }
  void wait(std::int64_t slot) override { left_[static_cast<std::size_t>(slot)].wait(); }
  void send(std::int64_t slot, void* to, const void* from, std::size_t bytes) override {
    cuda_check(cudaMemcpyAsync(to, from, bytes, cudaMemcpyHostToDevice, stream_));
    left_[static_cast<std::size_t>(slot)].record(stream_);
  }

 private:
  cudaStream_t stream_;
  int device_ = 0;
  std::vector<CudaEvent> left_;  // [slots]
};

/// The node of the GPU, or the one that is farthest from it.
using Node = NumaNode GpuPlaces::*;

inline lab::Side placed_on(Node node, Params p, const lab::Cuda& cuda) {
  const auto places = places_of_first_gpu();
  if (!places) fail(places.error().message);
  // A CPU for each feeder on either node, or their number would differ as well.
  p.feeders = std::min({p.feeders, static_cast<std::int64_t>(places->near.cpus.size()),
                        static_cast<std::int64_t>(places->far.cpus.size())});
  const NumaNode& here = (*places).*node;
  const std::int64_t slots = 2 * p.feeders;
  const auto bytes =
      static_cast<std::int64_t>(sizeof(std::uint64_t)) * slots * p.slot_rows * kRowWords;
  const auto memory = std::make_shared<NodePages>(bytes, here.id);
  const auto feeders = std::make_shared<Feeders>(
      p, Feeders::Place{.cpus = here.cpus,
                        .slots = memory->data(),
                        .link = std::make_shared<StreamLink>(slots, cuda.stream)});
  lab::Side side([memory, feeders] { feeders->run(); });
  side.helpers = lab::Helpers::threads;
  side.outcomes = [memory, feeders, bytes, near = places->near] {
    std::map<std::string, double> seen;
    if (const auto share = share_on_node(memory->data(), bytes, near.id)) {
      seen["local_share"] = *share;
    }
    const std::vector<int> ran_on = feeders->take_cpus();
    if (!ran_on.empty()) {
      const auto beside = std::ranges::count_if(
          ran_on, [&](int cpu) { return std::ranges::find(near.cpus, cpu) != near.cpus.end(); });
      seen["feeders_near"] = static_cast<double>(beside) / static_cast<double>(ran_on.size());
    }
    return seen;
  };
  return side;
}

}  // namespace gauntlet::ch03::gpu_numa_affinity::cuda
