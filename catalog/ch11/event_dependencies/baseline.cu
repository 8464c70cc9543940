// After each round the host waits for the device, and then gives both streams the next one.
#include <cuda_runtime.h>

#include <memory>
#include <vector>

#include "catalog/ch11/event_dependencies/device_waits.h"
#include "catalog/ch11/event_dependencies/pair.h"
#include "core/cuda/check.h"
#include "core/cuda/side_streams.h"
#include "lab/author/counted.h"

namespace gauntlet::ch11::event_dependencies::cuda {
namespace {

constexpr int kThreads = 256;

__global__ void __launch_bounds__(kThreads)
    exchange(const std::uint32_t* from, std::uint32_t* to, std::int64_t words, int half,
             const std::uint32_t* factor) {
  const std::int64_t i = std::int64_t{blockIdx.x} * kThreads + threadIdx.x;
  if (i >= words) return;
  to[half * words + i] = from[half * words + i] * (*factor & ~1u) + from[(1 - half) * words + i];
}

void launch(const Params& p, std::int64_t round, int half, cudaStream_t stream) {
  const std::int64_t size = 2 * p.words;
  const std::uint32_t* from = round == 0 ? p.in : p.between + (round - 1) % 2 * size;
  std::uint32_t* to = round == p.rounds - 1 ? p.out : p.between + round % 2 * size;
  const auto blocks = static_cast<unsigned>((p.words + kThreads - 1) / kThreads);
  exchange<<<blocks, kThreads, 0, stream>>>(from, to, p.words, half, p.factor + round);
  cuda_check(cudaGetLastError());
}

}  // namespace

lab::Side baseline(const Params& p, const lab::Cuda& cuda) {
  const auto waits = std::make_shared<DeviceWaits>();
  const auto streams = std::make_shared<SideStreams>(std::vector<int>(2));
  return lab::counted(device_waits(waits), [p, waits, streams, stream = cuda.stream] {
    streams->fork(stream);
    for (std::int64_t round = 0; round < p.rounds; ++round) {
      for (const int half : {0, 1}) launch(p, round, half, (*streams)[half]);
      waits->wait();
    }
    streams->join(stream);
  });
}

}  // namespace gauntlet::ch11::event_dependencies::cuda
