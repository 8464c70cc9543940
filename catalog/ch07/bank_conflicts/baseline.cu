// A block loads its rows side by side into shared memory, then each thread sums one row: all lanes
// of a warp read the same column, and with 32 words per row that is one bank.
#include <cuda_runtime.h>

#include "catalog/ch07/bank_conflicts/pair.h"
#include "core/cuda/check.h"
#include "lab/author/side.h"

namespace gauntlet::ch07::bank_conflicts::cuda {
namespace {

constexpr int kThreads = 128;  // and rows of a block
constexpr int kPitch = kColumns;
static_assert(kThreads % kColumns == 0);

__global__ void __launch_bounds__(kThreads) sum_rows(Params p) {
  __shared__ float tile[kThreads * kPitch];
  const std::int64_t first_row = std::int64_t{blockIdx.x} * kThreads;
  // The last block's missing rows repeat its last word; nobody stores their sums.
  const int words = static_cast<int>(min(p.rows - first_row, std::int64_t{kThreads})) * kColumns;
  const float* in = p.in + first_row * kColumns;
#pragma unroll
  for (int i = 0; i < kColumns; ++i) {
    const int word = i * kThreads + threadIdx.x;
    tile[word / kColumns * kPitch + word % kColumns] = in[min(word, words - 1)];
  }
  __syncthreads();

  float sum = 0;
#pragma unroll
  for (int column = 0; column < kColumns; ++column) sum += tile[threadIdx.x * kPitch + column];
  if (first_row + threadIdx.x < p.rows) p.sums[first_row + threadIdx.x] = sum;
}

}  // namespace

lab::Side baseline(const Params& p, const lab::Cuda& cuda) {
  cudaFuncAttributes kernel;
  cuda_check(cudaFuncGetAttributes(&kernel, sum_rows));
  return lab::Side(
      [p, stream = cuda.stream] {
        const auto blocks = static_cast<unsigned>((p.rows + kThreads - 1) / kThreads);
        sum_rows<<<blocks, kThreads, 0, stream>>>(p);
        cuda_check(cudaGetLastError());
      },
      {{"shared_bytes", static_cast<double>(kernel.sharedSizeBytes)}});
}

}  // namespace gauntlet::ch07::bank_conflicts::cuda
