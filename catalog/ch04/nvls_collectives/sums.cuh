// Sums over GPUs, of each of which one GPU makes a part for all.
#pragma once
#include <cuda_runtime.h>

#include "catalog/ch04/nvls_collectives/pair.h"
#include "core/cuda/check.h"
#include "core/cuda/gpu_set.h"

namespace gauntlet::ch04::nvls_collectives::cuda {

constexpr int kThreads = 512;
constexpr int kBlocks = 64;  // half of the SMs have the links of a GPU filled
constexpr int kMostGpus = 16;

/// Where an operand is on each GPU.
struct Operands {
  float4* of[kMostGpus];
};

inline void check_parts(const Params& p) {
  check(p.devices.size() <= kMostGpus, "more GPUs than this sum is written for");
  check(p.part() % 4 == 0 && p.part() * std::ssize(p.devices) == p.words,
        "an operand that has no equal part for each GPU");
}

/// `add(gpu, stream)` launches what makes that GPU's part of a sum. Operands are overwritten.
template <class Add>
void sum_over_gpus(const Params& p, const GpuSet& gpus, const Operands& operands,
                   cudaStream_t stream, Add add) {
  const auto bytes = sizeof(float) * static_cast<std::size_t>(p.words);
  for (int gpu = 0; gpu < gpus.size(); ++gpu) {
    cuda_check(
        cudaMemcpyAsync(operands.of[gpu], p.in + gpu * p.words, bytes, cudaMemcpyDefault, stream));
  }
  gpus.fork(stream);
  for (int sum = 0; sum < kSums; ++sum) {
    for (int gpu = 0; gpu < gpus.size(); ++gpu) {
      const OnDevice on(gpus.device(gpu));
      add(gpu, gpus.stream(gpu));
      cuda_check(cudaGetLastError());
    }
    gpus.meet();
  }
  gpus.join(stream);
  for (int gpu = 0; gpu < gpus.size(); ++gpu) {
    cuda_check(
        cudaMemcpyAsync(p.out + gpu * p.words, operands.of[gpu], bytes, cudaMemcpyDefault, stream));
  }
}

}  // namespace gauntlet::ch04::nvls_collectives::cuda
