// The kernel reads and writes host memory over the link.
#include <cuda_runtime.h>

#include "catalog/ch02/zero_copy_small/crossover.h"
#include "catalog/ch02/zero_copy_small/pair.h"
#include "core/cuda/captured_work.h"
#include "core/cuda/check.h"
#include "lab/author/side.h"

namespace gauntlet::ch02::zero_copy_small::cuda {
namespace {

constexpr int kThreads = 256;

__global__ void scramble(const std::uint32_t* in, std::uint32_t* out, std::int64_t words) {
  const std::int64_t i = std::int64_t{blockIdx.x} * kThreads + threadIdx.x;
  if (i < words) out[i] = scrambled(in[i]);
}

lab::Side mapped(const Params& p, const lab::Cuda& cuda) {
  const auto run = [p, stream = cuda.stream] {
    const auto blocks = static_cast<unsigned>((p.words + kThreads - 1) / kThreads);
    scramble<<<blocks, kThreads, 0, stream>>>(p.in, p.out, p.words);
    cuda_check(cudaGetLastError());
  };
  return {run, {{"copies", captured_copies(cuda.stream, run)}}};
}

}  // namespace

lab::Side baseline(const Params& p, const lab::Cuda& cuda);

lab::Side optimized(const Params& p, const lab::Cuda& cuda) {
  lab::Side side = mapped(p, cuda);
  side.facts["crossover_bytes"] = crossover_bytes(*p.crossover, cuda, baseline, mapped);
  return side;
}

}  // namespace gauntlet::ch02::zero_copy_small::cuda
