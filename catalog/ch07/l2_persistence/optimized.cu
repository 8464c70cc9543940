// The same kernel, launched with an access policy window over the table: its lines persist in a
// part of L2 set aside for them while this side runs.
#include <cuda_runtime.h>

#include <algorithm>

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

std::size_t device_attribute(cudaDeviceAttr attribute) {
  int device = 0, value = 0;
  cuda_check(cudaGetDevice(&device));
  cuda_check(cudaDeviceGetAttribute(&value, attribute, device));
  return static_cast<std::size_t>(value);
}

}  // namespace

lab::Side optimized(const Params& p, const lab::Cuda& cuda) {
  const std::size_t table_bytes = static_cast<std::size_t>(p.table_rows) * kWidth * sizeof(float);
  const std::size_t window_bytes =
      std::min(table_bytes, device_attribute(cudaDevAttrMaxAccessPolicyWindowSize));
  const std::size_t set_aside_bytes =
      std::min(window_bytes, device_attribute(cudaDevAttrMaxPersistingL2CacheSize));
  check(set_aside_bytes > 0, "this GPU lets no part of L2 be set aside (is MIG on?)");

  cudaLaunchAttribute attribute{};
  attribute.id = cudaLaunchAttributeAccessPolicyWindow;
  cudaAccessPolicyWindow& window = attribute.val.accessPolicyWindow;
  window.base_ptr = const_cast<float*>(p.table);
  window.num_bytes = window_bytes;
  // A window larger than what was set aside would evict its own lines.
  window.hitRatio =
      static_cast<float>(static_cast<double>(set_aside_bytes) / static_cast<double>(window_bytes));
  window.hitProp = cudaAccessPropertyPersisting;
  window.missProp = cudaAccessPropertyNormal;

  lab::Side side([p, attribute, stream = cuda.stream]() mutable {
    const auto blocks = static_cast<unsigned>((p.rows + kRowsPerBlock - 1) / kRowsPerBlock);
    cudaLaunchConfig_t launch{};
    launch.gridDim = blocks;
    launch.blockDim = kThreads;
    launch.stream = stream;
    launch.attrs = &attribute;
    launch.numAttrs = 1;
    cuda_check(cudaLaunchKernelEx(&launch, add_rows, p));
  });
  side.enter = [set_aside_bytes] {
    cuda_check(cudaDeviceSetLimit(cudaLimitPersistingL2CacheSize, set_aside_bytes));
  };
  side.leave = [] {
    cuda_check(cudaCtxResetPersistingL2Cache());
    cuda_check(cudaDeviceSetLimit(cudaLimitPersistingL2CacheSize, 0));
  };
  side.facts = {{"l2_set_aside_bytes", static_cast<double>(set_aside_bytes)}};
  return side;
}

}  // namespace gauntlet::ch07::l2_persistence::cuda
