// Two pipelines: a half on each stream, so that one computes while the other communicates.
#include <cuda_runtime.h>

#include <memory>
#include <vector>

#include "catalog/ch11/dual_pipeline/pair.h"
#include "core/affine_rounds.h"
#include "core/cuda/check.h"
#include "core/cuda/side_streams.h"
#include "lab/author/side.h"

namespace gauntlet::ch11::dual_pipeline::cuda {
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
    compute(const std::uint32_t* from, std::uint32_t* to, const std::uint32_t* factor) {
  const std::int64_t at = std::int64_t{blockIdx.x} * kThreads + threadIdx.x;
  uint4 x = reinterpret_cast<const uint4*>(from)[at];
  for (int round = 0; round < kRounds; round += 4) {
    const uint4 f = __ldg(reinterpret_cast<const uint4*>(factor + round));
    advance(x, f.x);
    advance(x, f.y);
    advance(x, f.z);
    advance(x, f.w);
  }
  reinterpret_cast<uint4*>(to)[at] = x;
}

void run_layer(const Params& p, std::int64_t layer, std::int64_t half, cudaStream_t stream) {
  const std::int64_t first = half * p.words, middle = p.words / 2;
  std::uint32_t* hidden = p.hidden + first;
  compute<<<static_cast<unsigned>(p.words / kBlockWords), kThreads, 0, stream>>>(
      layer == 0 ? p.in + first : hidden, hidden, p.factor);
  cuda_check(cudaGetLastError());

  const auto copy = [&](std::uint32_t* to, const std::uint32_t* from, std::int64_t words) {
    cuda_check(cudaMemcpyAsync(to, from, static_cast<std::size_t>(words) * sizeof(*to),
                               cudaMemcpyDefault, stream));
  };
  std::uint32_t* wire = p.wire + first;
  std::uint32_t* back = layer == p.layers - 1 ? p.out + first : hidden;
  copy(wire, hidden, p.words);
  copy(back, wire + middle, middle);
  copy(back + middle, wire, middle);
}

}  // namespace

lab::Side optimized(const Params& p, const lab::Cuda& cuda) {
  const auto streams = std::make_shared<SideStreams>(std::vector<int>(kHalves));
  return [p, streams, stream = cuda.stream] {
    streams->fork(stream);
    for (std::int64_t layer = 0; layer < p.layers; ++layer) {
      for (std::int64_t half = 0; half < kHalves; ++half) {
        run_layer(p, layer, half, (*streams)[static_cast<std::size_t>(half)]);
      }
    }
    streams->join(stream);
  };
}

}  // namespace gauntlet::ch11::dual_pipeline::cuda
