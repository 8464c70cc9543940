// The input is copied to the device, and the output back.
#include <cuda_runtime.h>

#include <memory>

#include "catalog/ch02/zero_copy_small/pair.h"
#include "core/cuda/check.h"
#include "core/cuda/stream_copies.h"
#include "lab/author/counted.h"

namespace gauntlet::ch02::zero_copy_small::cuda {
namespace {

constexpr int kThreads = 256;

__global__ void scramble(const std::uint32_t* in, std::uint32_t* out, std::int64_t words) {
  const std::int64_t i = std::int64_t{blockIdx.x} * kThreads + threadIdx.x;
  if (i < words) out[i] = scrambled(in[i]);
}

}  // namespace

lab::Side baseline(const Params& p, const lab::Cuda& cuda) {
  const auto copies = std::make_shared<StreamCopies>();
  return lab::counted(
      {.name = "copies", .total = [copies] { return static_cast<double>(copies->count()); }},
      [p, copies, stream = cuda.stream] {
        const auto blocks = static_cast<unsigned>((p.words + kThreads - 1) / kThreads);
        const std::size_t bytes = 4 * static_cast<std::size_t>(p.words);
        copies->copy(p.staged, p.in, bytes, stream);
        scramble<<<blocks, kThreads, 0, stream>>>(p.staged, p.staged, p.words);
        cuda_check(cudaGetLastError());
        copies->copy(p.out, p.staged, bytes, stream);
      });
}

}  // namespace gauntlet::ch02::zero_copy_small::cuda
