// Two kernels: eight blocks per row leave their sums in global memory, and eight others read them
// all, and the row once more.
#include <cuda_runtime.h>

#include "catalog/ch10/dsmem_reduction/pair.h"
#include "core/cuda/check.h"
#include "lab/author/side.h"

namespace gauntlet::ch10::dsmem_reduction::cuda {
namespace {

constexpr int kWarps = kThreads / 32;

/// The thread's first four words of the block's part of a row; the next are 4 kThreads further.
__device__ __forceinline__ std::int64_t first_word() {
  return std::int64_t{blockIdx.x} * (kColumns / kBlocksPerRow) + 4 * threadIdx.x;
}

__global__ void __launch_bounds__(kThreads) add_up(Params p) {
  __shared__ float of_warps[kWarps];
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
  if (threadIdx.x > 0) return;
  float all = 0;
  for (float of_warp : of_warps) all += of_warp;
  p.partial[blockIdx.x] = all;
}

__global__ void __launch_bounds__(kThreads) normalize(Params p) {
  const float* partial = p.partial + blockIdx.x / kBlocksPerRow * kBlocksPerRow;
  float all = 0;
#pragma unroll
  for (int block = 0; block < kBlocksPerRow; ++block) all += partial[block];
  const float scale = rsqrtf(all);
  const float* in = p.in + first_word();
  float* out = p.out + first_word();
#pragma unroll
  for (int v = 0; v < kVectors; ++v) {
    const float4 x = *reinterpret_cast<const float4*>(in + 4 * kThreads * v);
    *reinterpret_cast<float4*>(out + 4 * kThreads * v) =
        make_float4(x.x * scale, x.y * scale, x.z * scale, x.w * scale);
  }
}

}  // namespace

lab::Side baseline(const Params& p, const lab::Cuda& cuda) {
  return [p, stream = cuda.stream] {
    const auto blocks = static_cast<unsigned>(p.rows * kBlocksPerRow);
    add_up<<<blocks, kThreads, 0, stream>>>(p);
    normalize<<<blocks, kThreads, 0, stream>>>(p);
    cuda_check(cudaGetLastError());
  };
}

}  // namespace gauntlet::ch10::dsmem_reduction::cuda
