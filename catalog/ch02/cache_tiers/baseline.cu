// Pass after pass over all words.
#include <cuda_runtime.h>

#include "catalog/ch02/cache_tiers/pair.h"
#include "core/cuda/check.h"
#include "lab/author/side.h"

namespace gauntlet::ch02::cache_tiers::cuda {
namespace {

constexpr int kThreads = 256;

/// One pass over the words [begin, end).
__global__ void pass_over(Params p, std::int64_t pass, std::int64_t begin, std::int64_t end) {
  const std::int64_t i = begin + std::int64_t{blockIdx.x} * kThreads + threadIdx.x;
  if (i >= end) return;
  const std::uint32_t* from = pass == 0 ? p.in : p.out;
  p.out[i] = from[i] * p.factor[pass] + 1;
}

void launch(const Params& p, std::int64_t pass, std::int64_t begin, std::int64_t end,
            cudaStream_t stream) {
  const auto blocks = static_cast<unsigned>((end - begin + kThreads - 1) / kThreads);
  pass_over<<<blocks, kThreads, 0, stream>>>(p, pass, begin, end);
  cuda_check(cudaGetLastError());
}

}  // namespace

lab::Side baseline(const Params& p, const lab::Cuda& cuda) {
  return [p, stream = cuda.stream] {
    for (std::int64_t pass = 0; pass < p.passes; ++pass) launch(p, pass, 0, p.words, stream);
  };
}

}  // namespace gauntlet::ch02::cache_tiers::cuda
