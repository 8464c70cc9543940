// The kernel that decides launches its own graph again, to start when this one has ended.
#include <cuda_runtime.h>

#include <memory>

#include "catalog/ch12/device_graph_launch/pair.h"
#include "core/affine_rounds.h"
#include "core/cuda/check.h"
#include "core/cuda/graph.h"
#include "core/cuda/memory.h"
#include "core/cuda/stream_waits.h"
#include "lab/author/counted.h"

namespace gauntlet::ch12::device_graph_launch::cuda {
namespace {

constexpr int kThreads = 256;

__global__ void __launch_bounds__(kThreads)
    iterate(std::uint32_t* state, std::int64_t words, const std::uint32_t* factor,
            const std::int32_t* done) {
  const std::int64_t i = std::int64_t{blockIdx.x} * kThreads + threadIdx.x;
  if (i < words) state[i] = affine_round(state[i], factor[*done]);
}

__global__ void decide(std::int32_t* done, const std::int32_t* wanted) {
  if (++*done < *wanted) cudaGraphLaunch(cudaGetCurrentGraphExec(), cudaStreamGraphTailLaunch);
}

/// What a run starts from.
void begin(const Params& p, std::int32_t* done, cudaStream_t stream) {
  cuda_check(cudaMemsetAsync(done, 0, sizeof(*done), stream));
  cuda_check(cudaMemcpyAsync(p.out, p.in, static_cast<std::size_t>(p.words) * sizeof(*p.out),
                             cudaMemcpyDeviceToDevice, stream));
}

}  // namespace

lab::Side optimized(const Params& p, const lab::Cuda& cuda) {
  const auto waits = std::make_shared<StreamWaits>();
  const auto on_device = std::make_shared<DeviceMemory>(sizeof(std::int32_t));
  auto* done = reinterpret_cast<std::int32_t*>(on_device->data());
  const CudaGraph captured(cuda.stream, [&, stream = cuda.stream] {
    const auto blocks = static_cast<unsigned>((p.words + kThreads - 1) / kThreads);
    iterate<<<blocks, kThreads, 0, stream>>>(p.out, p.words, p.factor, done);
    decide<<<1, 1, 0, stream>>>(done, p.wanted);
    cuda_check(cudaGetLastError());
  });
  const auto graph =
      std::make_shared<CudaGraphExec>(captured, cudaGraphInstantiateFlagDeviceLaunch);
  graph->upload(cuda.stream);  // a graph that is not on the device cannot be launched from it
  return lab::counted(
      {.name = "stream_waits", .total = [waits] { return static_cast<double>(waits->count()); }},
      [p, on_device, done, graph, stream = cuda.stream] {
        begin(p, done, stream);
        graph->launch(stream);
      });
}

}  // namespace gauntlet::ch12::device_graph_launch::cuda
