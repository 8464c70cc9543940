// Requests have a stream of the highest priority: the next places that come free are theirs.
#include <cuda_runtime.h>

#include <memory>
#include <vector>

#include "catalog/ch11/priority_streams/latencies.h"
#include "catalog/ch11/priority_streams/pair.h"
#include "core/affine_rounds.h"
#include "core/cuda/check.h"
#include "core/cuda/side_streams.h"
#include "lab/author/side.h"

namespace gauntlet::ch11::priority_streams::cuda {
namespace {

constexpr int kThreads = 256;
enum Stream : std::size_t { kBulk, kRequests };

template <int rounds>
__global__ void __launch_bounds__(kThreads)
    work_on(const std::uint32_t* from, std::uint32_t* to, std::int64_t words,
            const std::uint32_t* factor) {
  const std::int64_t i = std::int64_t{blockIdx.x} * kThreads + threadIdx.x;
  if (i >= words) return;
  std::uint32_t x = from[i];
  for (int round = 0; round < rounds; round += 4) {
    const uint4 f = __ldg(reinterpret_cast<const uint4*>(factor + round));
    x = affine_round(x, f.x);
    x = affine_round(x, f.y);
    x = affine_round(x, f.z);
    x = affine_round(x, f.w);
  }
  to[i] = x;
}

unsigned blocks_of(std::int64_t words) {
  return static_cast<unsigned>((words + kThreads - 1) / kThreads);
}

void run_bulk(const Params& p, cudaStream_t stream) {
  for (std::int64_t kernel = 0; kernel < p.bulk_kernels; ++kernel) {
    work_on<kBulkRounds><<<blocks_of(p.bulk_words), kThreads, 0, stream>>>(
        kernel == 0 ? p.bulk_in : p.bulk_out, p.bulk_out, p.bulk_words, p.factor);
    cuda_check(cudaGetLastError());
  }
}

void answer(const Params& p, std::int64_t request, cudaStream_t stream) {
  const std::int64_t first = request * p.request_words;
  work_on<kRequestRounds><<<blocks_of(p.request_words), kThreads, 0, stream>>>(
      p.request_in + first, p.answer + first, p.request_words, p.factor);
  cuda_check(cudaGetLastError());
}

/// Lower numbers go first.
std::vector<int> priorities() {
  int lowest = 0, highest = 0;
  cuda_check(cudaDeviceGetStreamPriorityRange(&lowest, &highest));
  return {0, highest};
}

int priority_of(cudaStream_t stream) {
  int priority = 0;
  cuda_check(cudaStreamGetPriority(stream, &priority));
  return priority;
}

}  // namespace

lab::Side optimized(const Params& p, const lab::Cuda& cuda) {
  const auto streams = std::make_shared<SideStreams>(priorities());
  const auto latencies = std::make_shared<Latencies>();
  lab::Side side = [p, streams, latencies, stream = cuda.stream] {
    streams->fork(stream);
    run_bulk(p, (*streams)[kBulk]);
    for (std::int64_t request = 0; request < p.requests; ++request) {
      latencies->serve((*streams)[kRequests], [&] { answer(p, request, (*streams)[kRequests]); });
    }
    streams->join(stream);
  };
  side.facts = {
      {"levels_above_bulk", priority_of((*streams)[kBulk]) - priority_of((*streams)[kRequests])}};
  side.distributions = [latencies] { return latencies->take(); };
  return side;
}

}  // namespace gauntlet::ch11::priority_streams::cuda
