// A few SMs of each GPU read the other GPUs' shards, as a library's kernels do.
#include "catalog/ch04/copy_engine_collectives/gather.cuh"

namespace gauntlet::ch04::copy_engine_collectives::cuda {
namespace {

constexpr int kBlocks = 16;  // NCCL takes 16 to 32 channels, of a block each
constexpr int kThreads = 512;

__global__ void __launch_bounds__(kThreads)
    pull(const uint4* __restrict__ from, uint4* __restrict__ to, std::int64_t count) {
#pragma unroll 4
  for (std::int64_t i = std::int64_t{blockIdx.x} * kThreads + threadIdx.x; i < count;
       i += std::int64_t{kBlocks} * kThreads) {
    to[i] = from[i];
  }
}

}  // namespace

lab::Side baseline(const Params& p, const lab::Cuda& cuda) {
  return gathers(p, cuda.stream,
                 [](Gathering& gathering, int gpu, std::int64_t chunk, cudaStream_t stream) {
                   for (int next = 1; next < gathering.size(); ++next) {
                     const int shard = (gpu + next) % gathering.size();
                     pull<<<kBlocks, kThreads, 0, stream>>>(
                         reinterpret_cast<const uint4*>(gathering.place(shard, shard, chunk)),
                         reinterpret_cast<uint4*>(gathering.place(gpu, shard, chunk)),
                         gathering.chunk_words() / 4);
                     cuda_check(cudaGetLastError());
                   }
                 });
}

}  // namespace gauntlet::ch04::copy_engine_collectives::cuda
