// One thread per row, as a CPU loop is ported first: neighbouring lanes are one row apart, so each
// request of a warp touches 32 sectors.
#include <cuda_runtime.h>

#include "catalog/ch07/coalesced_copy/pair.h"
#include "core/cuda/check.h"
#include "lab/author/side.h"

namespace gauntlet::ch07::coalesced_copy::cuda {
namespace {

constexpr int kThreads = 256;

__global__ void copy_rows(Params p) {
  const float* __restrict__ in = p.in;
  float* __restrict__ out = p.out;
  const std::int64_t first = (std::int64_t{blockIdx.x} * kThreads + threadIdx.x) * p.columns;
#pragma unroll 4
  for (std::int64_t step = 0; step < p.columns; ++step) {
    out[first + step] = in[first + step];
  }
}

}  // namespace

lab::Side baseline(const Params& p, const lab::Cuda& cuda) {
  return [p, stream = cuda.stream] {
    const auto blocks = static_cast<unsigned>(p.rows / kThreads);  // rows are whole blocks
    copy_rows<<<blocks, kThreads, 0, stream>>>(p);
    cuda_check(cudaGetLastError());
  };
}

}  // namespace gauntlet::ch07::coalesced_copy::cuda
