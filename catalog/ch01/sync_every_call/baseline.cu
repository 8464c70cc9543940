// The host waits after each operation, as one does to see errors early: the GPU idles for a round
// trip every time.
#include <cuda_runtime.h>

#include <memory>

#include "catalog/ch01/sync_every_call/pair.h"
#include "core/cuda/check.h"
#include "core/cuda/stream_waits.h"
#include "lab/author/counted.h"

namespace gauntlet::ch01::sync_every_call::cuda {
namespace {

constexpr int kThreads = 256;

__global__ void apply_layer(Params p, std::int64_t layer) {
  const std::int64_t i = std::int64_t{blockIdx.x} * kThreads + threadIdx.x;
  if (i >= p.width) return;
  const float* before = layer == 0 ? p.in : p.out;
  const std::int64_t at = layer * p.width + i;
  p.out[i] = fmaf(p.weights[at], before[i], p.biases[at]);
}

}  // namespace

lab::Side baseline(const Params& p, const lab::Cuda& cuda) {
  const auto waits = std::make_shared<StreamWaits>();
  return lab::counted(
      {.name = "stream_waits", .total = [waits] { return static_cast<double>(waits->count()); }},
      [p, waits, stream = cuda.stream] {
        const auto blocks = static_cast<unsigned>((p.width + kThreads - 1) / kThreads);
        for (std::int64_t layer = 0; layer < p.layers; ++layer) {
          apply_layer<<<blocks, kThreads, 0, stream>>>(p, layer);
          cuda_check(cudaGetLastError());
          waits->wait(stream);
        }
      });
}

}  // namespace gauntlet::ch01::sync_every_call::cuda
