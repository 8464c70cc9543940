// Each GPU reads its part from all others, adds it up and writes the sum to all of them.
#include <memory>
#include <vector>

#include "catalog/ch04/nvls_collectives/sums.cuh"
#include "core/cuda/memory.h"
#include "lab/author/side.h"

namespace gauntlet::ch04::nvls_collectives::cuda {
namespace {

__global__ void __launch_bounds__(kThreads)
    add_part(Operands operands, int gpus, int first, std::int64_t begin, std::int64_t end) {
  for (std::int64_t i = begin + std::int64_t{blockIdx.x} * kThreads + threadIdx.x; i < end;
       i += std::int64_t{kBlocks} * kThreads) {
    float4 sum = {0, 0, 0, 0};
    // Each begins at another one, so that they do not all ask the same.
    for (int next = 0; next < gpus; ++next) {
      const float4 x = operands.of[(first + next) % gpus][i];
      sum = {sum.x + x.x, sum.y + x.y, sum.z + x.z, sum.w + x.w};
    }
    for (int next = 0; next < gpus; ++next) operands.of[(first + next) % gpus][i] = sum;
  }
}

struct State {
  explicit State(const Params& p) : gpus(p.devices) {
    check_parts(p);
    for (int gpu = 0; gpu < gpus.size(); ++gpu) {
      memory.push_back(gpus.memory(gpu, 4 * p.words));
      operands.of[gpu] = reinterpret_cast<float4*>(memory.back().data());
    }
  }
  GpuSet gpus;
  std::vector<DeviceMemory> memory;
  Operands operands{};
};

}  // namespace

lab::Side baseline(const Params& p, const lab::Cuda& cuda) {
  const auto state = std::make_shared<State>(p);
  return [p, state, stream = cuda.stream] {
    const std::int64_t part = p.part() / 4;
    sum_over_gpus(p, state->gpus, state->operands, stream, [&](int gpu, cudaStream_t own) {
      add_part<<<kBlocks, kThreads, 0, own>>>(state->operands, state->gpus.size(), gpu, gpu * part,
                                              (gpu + 1) * part);
    });
  };
}

}  // namespace gauntlet::ch04::nvls_collectives::cuda
