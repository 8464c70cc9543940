// The host waits for the sizes of a level, and launches a kernel for each region.
#include <cuda_runtime.h>

#include <memory>

#include "catalog/ch12/dynamic_parallelism/pair.h"
#include "core/affine_rounds.h"
#include "core/cuda/check.h"
#include "core/cuda/memory.h"
#include "core/cuda/stream_waits.h"
#include "lab/author/counted.h"

namespace gauntlet::ch12::dynamic_parallelism::cuda {
namespace {

constexpr int kThreads = 256;

__global__ void __launch_bounds__(kThreads)
    refine(std::uint32_t* region, std::uint32_t words, const std::uint32_t* factor) {
  const std::uint32_t i = blockIdx.x * kThreads + threadIdx.x;
  if (i < words) region[i] = affine_round(region[i], *factor);
}

__global__ void measure(const std::uint32_t* regions, std::uint32_t* words) {
  words[threadIdx.x] = words_to_refine(regions + threadIdx.x * kRegionWords);
}

void begin(const Params& p, cudaStream_t stream) {
  cuda_check(cudaMemcpyAsync(p.out, p.in,
                             static_cast<std::size_t>(p.regions * kRegionWords) * sizeof(*p.out),
                             cudaMemcpyDeviceToDevice, stream));
}

}  // namespace

lab::Side baseline(const Params& p, const lab::Cuda& cuda) {
  const auto waits = std::make_shared<StreamWaits>();
  const std::size_t bytes = static_cast<std::size_t>(p.regions) * sizeof(std::uint32_t);
  const auto on_device = std::make_shared<DeviceMemory>(bytes);
  const auto on_host = std::make_shared<PinnedMemory>(bytes);
  return lab::counted(
      {.name = "stream_waits", .total = [waits] { return static_cast<double>(waits->count()); }},
      [p, waits, bytes, on_device, on_host, stream = cuda.stream] {
        auto* measured = reinterpret_cast<std::uint32_t*>(on_device->data());
        const auto* words = reinterpret_cast<const std::uint32_t*>(on_host->data());
        begin(p, stream);
        for (std::int64_t level = 0; level < p.levels; ++level) {
          measure<<<1, static_cast<unsigned>(p.regions), 0, stream>>>(p.out, measured);
          cuda_check(cudaGetLastError());
          cuda_check(
              cudaMemcpyAsync(on_host->data(), measured, bytes, cudaMemcpyDeviceToHost, stream));
          waits->wait(stream);
          for (std::int64_t region = 0; region < p.regions; ++region) {
            refine<<<(words[region] + kThreads - 1) / kThreads, kThreads, 0, stream>>>(
                p.out + region * kRegionWords, words[region], p.factor + level);
            cuda_check(cudaGetLastError());
          }
        }
      });
}

}  // namespace gauntlet::ch12::dynamic_parallelism::cuda
