// The same copy with st.global.cs: the lines it writes are the first to leave L2, before the
// table's.
#include <cuda_runtime.h>

#include "catalog/ch07/streaming_stores/pair.h"
#include "core/cuda/check.h"
#include "lab/author/side.h"

namespace gauntlet::ch07::streaming_stores::cuda {
namespace {

constexpr int kThreads = 256;
constexpr int kLanes = kWidth / 4;  // of 16 bytes, per row
constexpr int kRowsPerPass = kThreads / kLanes;
constexpr int kPasses = 4;
constexpr int kRowsPerBlock = kRowsPerPass * kPasses;
static_assert(kWidth % 4 == 0 && kThreads % kLanes == 0);

__global__ void __launch_bounds__(kThreads) copy_rows(Params p) {
  const auto* table = reinterpret_cast<const float4*>(p.table);
  auto* out = reinterpret_cast<float4*>(p.out);
  const int lane = static_cast<int>(threadIdx.x) % kLanes;
  const std::int64_t first =
      std::int64_t{blockIdx.x} * kRowsPerBlock + static_cast<int>(threadIdx.x) / kLanes;
  float4 entries[kPasses];
#pragma unroll
  for (int pass = 0; pass < kPasses; ++pass) {
    const std::int64_t row = first + pass * kRowsPerPass;
    if (row < p.rows) entries[pass] = table[std::int64_t{p.index[row]} * kLanes + lane];
  }
#pragma unroll
  for (int pass = 0; pass < kPasses; ++pass) {
    const std::int64_t row = first + pass * kRowsPerPass;
    if (row < p.rows) __stcs(out + row * kLanes + lane, entries[pass]);
  }
}

}  // namespace

lab::Side optimized(const Params& p, const lab::Cuda& cuda) {
  return [p, stream = cuda.stream] {
    const auto blocks = static_cast<unsigned>((p.rows + kRowsPerBlock - 1) / kRowsPerBlock);
    copy_rows<<<blocks, kThreads, 0, stream>>>(p);
    cuda_check(cudaGetLastError());
  };
}

}  // namespace gauntlet::ch07::streaming_stores::cuda
