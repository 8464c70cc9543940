// One stream: a chunk comes, is worked on and goes back before the next one comes.
#include <cuda_runtime.h>

#include "catalog/ch11/copy_compute_overlap/pair.h"
#include "core/affine_rounds.h"
#include "core/cuda/check.h"
#include "lab/author/side.h"

namespace gauntlet::ch11::copy_compute_overlap::cuda {
namespace {

constexpr int kThreads = 256;
static_assert(kBlockWords == 4 * kThreads && kRounds % 4 == 0);

__device__ void advance(uint4& x, std::uint32_t factor) {
  x.x = affine_round(x.x, factor);
  x.y = affine_round(x.y, factor);
  x.z = affine_round(x.z, factor);
  x.w = affine_round(x.w, factor);
}

__global__ void __launch_bounds__(kThreads)
    work_on(std::uint32_t* words, const std::uint32_t* factor) {
  auto* mine = reinterpret_cast<uint4*>(words) + std::int64_t{blockIdx.x} * kThreads + threadIdx.x;
  const auto* factors = reinterpret_cast<const uint4*>(factor);
  uint4 x = *mine;
  for (int round = 0; round < kRounds / 4; ++round) {
    const uint4 f = __ldg(factors + round);
    advance(x, f.x);
    advance(x, f.y);
    advance(x, f.z);
    advance(x, f.w);
  }
  *mine = x;
}

/// Brings a chunk to the device, works on it and brings it back.
void process(const Params& p, std::int64_t chunk, cudaStream_t stream) {
  const std::int64_t words = p.words / kChunks, first = chunk * words;
  const auto bytes = static_cast<std::size_t>(words) * sizeof(std::uint32_t);
  cuda_check(
      cudaMemcpyAsync(p.device + first, p.in + first, bytes, cudaMemcpyHostToDevice, stream));
  work_on<<<static_cast<unsigned>(words / kBlockWords), kThreads, 0, stream>>>(p.device + first,
                                                                               p.factor);
  cuda_check(cudaGetLastError());
  cuda_check(
      cudaMemcpyAsync(p.out + first, p.device + first, bytes, cudaMemcpyDeviceToHost, stream));
}

}  // namespace

lab::Side baseline(const Params& p, const lab::Cuda& cuda) {
  return [p, stream = cuda.stream] {
    for (std::int64_t chunk = 0; chunk < kChunks; ++chunk) process(p, chunk, stream);
  };
}

}  // namespace gauntlet::ch11::copy_compute_overlap::cuda
