// Several streams: while the GPU works on one chunk the next ones come and the ones before go back.
#include <cuda_runtime.h>

#include <memory>
#include <vector>

#include "catalog/ch11/copy_compute_overlap/pair.h"
#include "core/affine_rounds.h"
#include "core/cuda/check.h"
#include "core/cuda/side_streams.h"
#include "lab/author/side.h"

namespace gauntlet::ch11::copy_compute_overlap::cuda {
namespace {

constexpr int kThreads = 256;
constexpr std::int64_t kStreams = 4;
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

lab::Side optimized(const Params& p, const lab::Cuda& cuda) {
  const auto streams = std::make_shared<SideStreams>(std::vector<int>(kStreams));
  return [p, streams, stream = cuda.stream] {
    streams->fork(stream);
    for (std::int64_t chunk = 0; chunk < kChunks; ++chunk) {
      process(p, chunk, (*streams)[static_cast<std::size_t>(chunk % kStreams)]);
    }
    streams->join(stream);
  };
}

}  // namespace gauntlet::ch11::copy_compute_overlap::cuda
