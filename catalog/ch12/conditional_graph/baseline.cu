// The host waits for the router's choice and launches what was chosen, round by round.
#include <cuda_runtime.h>

#include <memory>

#include "catalog/ch12/conditional_graph/pair.h"
#include "core/affine_rounds.h"
#include "core/cuda/check.h"
#include "core/cuda/memory.h"
#include "core/cuda/stream_waits.h"
#include "lab/author/counted.h"

namespace gauntlet::ch12::conditional_graph::cuda {
namespace {

constexpr int kThreads = 256;

__global__ void route(const std::uint32_t* state, Choice* choice) { *choice = choose(state); }

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

}  // namespace

lab::Side baseline(const Params& p, const lab::Cuda& cuda) {
  const auto waits = std::make_shared<StreamWaits>();
  const auto on_device = std::make_shared<DeviceMemory>(sizeof(Choice));
  const auto on_host = std::make_shared<PinnedMemory>(sizeof(Choice));
  return lab::counted(
      {.name = "stream_waits", .total = [waits] { return static_cast<double>(waits->count()); }},
      [p, waits, on_device, on_host, stream = cuda.stream] {
        auto* routed = reinterpret_cast<Choice*>(on_device->data());
        const auto* choice = reinterpret_cast<const Choice*>(on_host->data());
        for (std::int64_t round = 0; round < p.rounds; ++round) {
          const std::uint32_t* before = state_before(p, round);
          route<<<1, 1, 0, stream>>>(before, routed);
          cuda_check(cudaGetLastError());
          cuda_check(cudaMemcpyAsync(on_host->data(), routed, sizeof(Choice),
                                     cudaMemcpyDeviceToHost, stream));
          waits->wait(stream);
          apply_expert<<<blocks_of(p), kThreads, 0, stream>>>(
              before, p.out, p.words, p.factor + round * kExperts + choice->expert);
          cuda_check(cudaGetLastError());
          if (choice->correct != 0) {
            correct<<<blocks_of(p), kThreads, 0, stream>>>(p.out, p.words);
            cuda_check(cudaGetLastError());
          }
        }
      });
}

}  // namespace gauntlet::ch12::conditional_graph::cuda
