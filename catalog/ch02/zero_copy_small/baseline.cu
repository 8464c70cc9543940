// The input is copied to the device, and the output back.
#include <cuda_runtime.h>

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

}  // namespace

lab::Side baseline(const Params& p, const lab::Cuda& cuda) {
  const auto run = [p, stream = cuda.stream] {
    const auto blocks = static_cast<unsigned>((p.words + kThreads - 1) / kThreads);
    const std::size_t bytes = sizeof(std::uint32_t) * static_cast<std::size_t>(p.words);
    cuda_check(cudaMemcpyAsync(p.staged, p.in, bytes, cudaMemcpyHostToDevice, stream));
    scramble<<<blocks, kThreads, 0, stream>>>(p.staged, p.staged, p.words);
    cuda_check(cudaGetLastError());
    cuda_check(cudaMemcpyAsync(p.out, p.staged, bytes, cudaMemcpyDeviceToHost, stream));
  };
  return {run, {{"copies", captured_copies(cuda.stream, run)}}};
}

}  // namespace gauntlet::ch02::zero_copy_small::cuda
