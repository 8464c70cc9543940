// Every thread carries four times 16 bytes, all four loads in flight before the first store.
#include <cuda_runtime.h>

#include "catalog/ch07/tma_copy/pair.h"
#include "core/cuda/check.h"
#include "lab/side.h"

namespace gauntlet::ch07::tma_copy::cuda {
namespace {

constexpr int kThreads = 256;
constexpr int kVectorsPerThread = 4;
constexpr int kVectorsPerBlock = kThreads * kVectorsPerThread;

__global__ void __launch_bounds__(kThreads) copy_vectors(Params p) {
  const auto* in = reinterpret_cast<const float4*>(p.in);
  auto* out = reinterpret_cast<float4*>(p.out);
  const std::int64_t vectors = p.count / 4;
  const std::int64_t first = std::int64_t{blockIdx.x} * kVectorsPerBlock + threadIdx.x;
  float4 values[kVectorsPerThread];
#pragma unroll
  for (int i = 0; i < kVectorsPerThread; ++i) {
    if (first + i * kThreads < vectors) values[i] = in[first + i * kThreads];
  }
#pragma unroll
  for (int i = 0; i < kVectorsPerThread; ++i) {
    if (first + i * kThreads < vectors) out[first + i * kThreads] = values[i];
  }
}

}  // namespace

lab::Side baseline(const Params& p, const lab::Cuda& cuda) {
  return [p, stream = cuda.stream] {
    const std::int64_t vectors = p.count / 4;
    const auto blocks = static_cast<unsigned>((vectors + kVectorsPerBlock - 1) / kVectorsPerBlock);
    copy_vectors<<<blocks, kThreads, 0, stream>>>(p);
    cuda_check(cudaGetLastError());
  };
}

}  // namespace gauntlet::ch07::tma_copy::cuda
