// The switch adds up what all GPUs hold when one loads it, and sends what one stores to all.
#include <memory>

#include "catalog/ch04/nvls_collectives/sums.cuh"
#include "core/cuda/memory/multicast_memory.h"
#include "lab/author/side.h"
#include "ptx/multimem.cuh"

namespace gauntlet::ch04::nvls_collectives::cuda {
namespace {

__global__ void __launch_bounds__(kThreads)
    add_part(float4* all, std::int64_t begin, std::int64_t end) {
  for (std::int64_t i = begin + std::int64_t{blockIdx.x} * kThreads + threadIdx.x; i < end;
       i += std::int64_t{kBlocks} * kThreads) {
    ptx::multimem_store(all + i, ptx::multimem_load_sum(all + i));
  }
}

struct State {
  explicit State(const Params& p) : gpus(p.devices) {
    check_parts(p);
    auto made = MulticastMemory::make(p.devices, 4 * p.words);
    if (!made) fail(made.error().message);
    memory = std::move(*made);
    for (int gpu = 0; gpu < gpus.size(); ++gpu) {
      operands.of[gpu] = static_cast<float4*>(memory->own(gpu));
    }
  }
  GpuSet gpus;
  std::unique_ptr<MulticastMemory> memory;
  Operands operands{};
};

}  // namespace

lab::Side optimized(const Params& p, const lab::Cuda& cuda) {
  const auto state = std::make_shared<State>(p);
  return [p, state, stream = cuda.stream] {
    const std::int64_t part = p.part() / 4;
    auto* const all = static_cast<float4*>(state->memory->all());
    sum_over_gpus(p, state->gpus, state->operands, stream, [&](int gpu, cudaStream_t own) {
      add_part<<<kBlocks, kThreads, 0, own>>>(all, gpu * part, (gpu + 1) * part);
    });
  };
}

}  // namespace gauntlet::ch04::nvls_collectives::cuda
