// One thread per row, as a CPU loop is ported first: neighbouring lanes are one row apart, so each request of a
// warp touches 32 sectors.
#include <cuda_runtime.h>

#include "catalog/ch07/coalesced_copy/pair.h"
#include "core/cuda/check.h"
#include "lab/side.h"

namespace gauntlet::ch07::coalesced_copy::cuda {
namespace {

constexpr int kThreads = 256;

__global__ void copy_rows(Params p) {
  const std::int64_t row = std::int64_t{blockIdx.x} * kThreads + threadIdx.x;
  if (row >= p.rows) return;
  for (std::int64_t column = 0; column < p.columns; ++column) {
    p.out[row * p.columns + column] = p.in[row * p.columns + column];
  }
}

}  // namespace

lab::Side baseline(const Params& p, const lab::Cuda& cuda) {
  return [p, stream = cuda.stream] {
    const auto blocks = static_cast<unsigned>((p.rows + kThreads - 1) / kThreads);
    copy_rows<<<blocks, kThreads, 0, stream>>>(p);
    cuda_check(cudaGetLastError());
  };
}

}  // namespace gauntlet::ch07::coalesced_copy::cuda
