// subject: device-side launches
// A thread for every region launches what the region needs; a level ends when all of that has.
#include <cuda_runtime.h>

#include <memory>

#include "catalog/ch12/dynamic_parallelism/pair.h"
#include "core/affine_rounds.h"
#include "core/cuda/check.h"
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

__global__ void refine_all(std::uint32_t* regions, const std::uint32_t* factor) {
  std::uint32_t* region = regions + threadIdx.x * kRegionWords;
  const std::uint32_t words = words_to_refine(region);
  // Not in the order of the block's own stream: the regions have nothing to do with each other.
  refine<<<(words + kThreads - 1) / kThreads, kThreads, 0, cudaStreamFireAndForget>>>(region, words,
                                                                                      factor);
}

void begin(const Params& p, cudaStream_t stream) {
  cuda_check(cudaMemcpyAsync(p.out, p.in,
                             static_cast<std::size_t>(p.regions * kRegionWords) * sizeof(*p.out),
                             cudaMemcpyDeviceToDevice, stream));
}

}  // namespace

lab::Side optimized(const Params& p, const lab::Cuda& cuda) {
  const auto waits = std::make_shared<StreamWaits>();
  return lab::counted(
      {.name = "stream_waits", .total = [waits] { return static_cast<double>(waits->count()); }},
      [p, stream = cuda.stream] {
        begin(p, stream);
        for (std::int64_t level = 0; level < p.levels; ++level) {
          refine_all<<<1, static_cast<unsigned>(p.regions), 0, stream>>>(p.out, p.factor + level);
          cuda_check(cudaGetLastError());
        }
      });
}

}  // namespace gauntlet::ch12::dynamic_parallelism::cuda
