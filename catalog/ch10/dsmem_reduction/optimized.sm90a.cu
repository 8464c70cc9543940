// One kernel: the eight blocks of a row are a cluster, tell each other their sums through shared
// memory, and still have the row in registers.
#include <cuda_runtime.h>

#include "catalog/ch10/dsmem_reduction/pair.h"
#include "core/cuda/check.h"
#include "lab/author/side.h"
#include "ptx/cluster.cuh"

namespace gauntlet::ch10::dsmem_reduction::cuda {
namespace {

constexpr int kWarps = kThreads / 32;

/// The thread's first four words of the block's part of a row; the next are 4 kThreads further.
__device__ __forceinline__ std::int64_t first_word() {
  return std::int64_t{blockIdx.x} * (kColumns / kBlocksPerRow) + 4 * threadIdx.x;
}

__global__ void __launch_bounds__(kThreads) normalize(Params p) {
  __shared__ float of_warps[kWarps];
  __shared__ float of_blocks[kBlocksPerRow];
  // Nobody writes to a block that has not started.
  ptx::cluster_arrive_relaxed();
  const float* in = p.in + first_word();
  float4 x[kVectors];
#pragma unroll
  for (int v = 0; v < kVectors; ++v) {
    x[v] = *reinterpret_cast<const float4*>(in + 4 * kThreads * v);
  }
  float sum = 0;
#pragma unroll
  for (int v = 0; v < kVectors; ++v) {
    sum += (x[v].x * x[v].x + x[v].y * x[v].y) + (x[v].z * x[v].z + x[v].w * x[v].w);
  }
  for (int offset = 16; offset > 0; offset /= 2) sum += __shfl_xor_sync(~0u, sum, offset);
  if (threadIdx.x % 32 == 0) of_warps[threadIdx.x / 32] = sum;
  __syncthreads();
  ptx::cluster_wait();
  if (threadIdx.x < kBlocksPerRow) {
    float all = 0;
    for (float of_warp : of_warps) all += of_warp;
    *ptx::in_block(&of_blocks[ptx::cluster_rank()], static_cast<int>(threadIdx.x)) = all;
  }
  __syncwarp();
  ptx::cluster_arrive();  // every block has written to every other
  ptx::cluster_wait();
  float all = 0;
#pragma unroll
  for (float of_block : of_blocks) all += of_block;
  const float scale = rsqrtf(all);
  float* out = p.out + first_word();
#pragma unroll
  for (int v = 0; v < kVectors; ++v) {
    *reinterpret_cast<float4*>(out + 4 * kThreads * v) =
        make_float4(x[v].x * scale, x[v].y * scale, x[v].z * scale, x[v].w * scale);
  }
}

}  // namespace

lab::Side optimized(const Params& p, const lab::Cuda& cuda) {
  return [p, stream = cuda.stream] {
    cudaLaunchAttribute cluster{};
    cluster.id = cudaLaunchAttributeClusterDimension;
    cluster.val.clusterDim = {.x = kBlocksPerRow, .y = 1, .z = 1};
    cudaLaunchConfig_t config{};
    config.gridDim = dim3(static_cast<unsigned>(p.rows * kBlocksPerRow));
    config.blockDim = dim3(kThreads);
    config.stream = stream;
    config.attrs = &cluster;
    config.numAttrs = 1;
    cuda_check(cudaLaunchKernelEx(&config, normalize, p));
  };
}

}  // namespace gauntlet::ch10::dsmem_reduction::cuda
