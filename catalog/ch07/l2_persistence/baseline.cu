// Adds a row of the hot table to each row of a stream; L2 keeps whatever came last.
#include <cuda_runtime.h>

#include "catalog/ch07/l2_persistence/pair.h"
#include "core/cuda/check.h"
#include "lab/author/side.h"

namespace gauntlet::ch07::l2_persistence::cuda {
namespace {

constexpr int kThreads = 256;
constexpr int kLanes = kWidth / 4;  // of 16 bytes, per row
constexpr int kRowsPerPass = kThreads / kLanes;
constexpr int kPasses = 4;
constexpr int kRowsPerBlock = kRowsPerPass * kPasses;
static_assert(kWidth % 4 == 0 && kThreads % kLanes == 0);

__device__ float4 add(float4 a, float4 b) {
  return make_float4(a.x + b.x, a.y + b.y, a.z + b.z, a.w + b.w);
}

__global__ void __launch_bounds__(kThreads) add_rows(Params p) {
  const auto* table = reinterpret_cast<const float4*>(p.table);
  const auto* x = reinterpret_cast<const float4*>(p.x);
  auto* out = reinterpret_cast<float4*>(p.out);
  const int lane = static_cast<int>(threadIdx.x) % kLanes;
  const std::int64_t first =
      std::int64_t{blockIdx.x} * kRowsPerBlock + static_cast<int>(threadIdx.x) / kLanes;
  float4 sums[kPasses];
#pragma unroll
  for (int pass = 0; pass < kPasses; ++pass) {
    const std::int64_t row = first + pass * kRowsPerPass;
    if (row < p.rows) {
      sums[pass] = add(x[row * kLanes + lane], table[std::int64_t{p.index[row]} * kLanes + lane]);
    }
  }
#pragma unroll
  for (int pass = 0; pass < kPasses; ++pass) {
    const std::int64_t row = first + pass * kRowsPerPass;
    if (row < p.rows) out[row * kLanes + lane] = sums[pass];
  }
}

}  // namespace

lab::Side baseline(const Params& p, const lab::Cuda& cuda) {
  return [p, stream = cuda.stream] {
    const auto blocks = static_cast<unsigned>((p.rows + kRowsPerBlock - 1) / kRowsPerBlock);
    add_rows<<<blocks, kThreads, 0, stream>>>(p);
    cuda_check(cudaGetLastError());
  };
}

}  // namespace gauntlet::ch07::l2_persistence::cuda
