// Every token is an atomic addition to what all blocks count in.
#include <cuda_runtime.h>

#include "catalog/ch12/batched_atomics/pair.h"
#include "core/cuda/check.h"
#include "lab/author/side.h"

namespace gauntlet::ch12::batched_atomics::cuda {
namespace {

constexpr int kThreads = 256;
constexpr int kBlocksPerSm = 8;

/// A token's logits, read at once.
union Logits {
  uint4 words;
  std::int8_t values[kExperts];
};
static_assert(sizeof(Logits) == kExperts);

__global__ void __launch_bounds__(kThreads) count_tokens(Params p) {
  const std::int64_t step = std::int64_t{gridDim.x} * kThreads;
  for (std::int64_t token = std::int64_t{blockIdx.x} * kThreads + threadIdx.x; token < p.tokens;
       token += step) {
    Logits logits;
    logits.words = reinterpret_cast<const uint4*>(p.logits)[token];
    atomicAdd(p.count + expert_of(logits.values), 1u);
  }
}

}  // namespace

lab::Side baseline(const Params& p, const lab::Cuda& cuda) {
  return [p, blocks = cuda.num_sms * kBlocksPerSm, stream = cuda.stream] {
    cuda_check(cudaMemsetAsync(p.count, 0, kExperts * sizeof(*p.count), stream));
    count_tokens<<<blocks, kThreads, 0, stream>>>(p);
    cuda_check(cudaGetLastError());
  };
}

}  // namespace gauntlet::ch12::batched_atomics::cuda
