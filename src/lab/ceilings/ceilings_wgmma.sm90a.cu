// How fast are Hopper's tensor cores through wgmma? Two warpgroups multiply tiles that lie in
// shared memory throughout, so only the operand reads of wgmma itself share the time.
#include <cuda_runtime.h>

#include "core/cuda/check.h"
#include "lab/ceilings/ceilings_cuda.h"
#include "ptx/fence.cuh"
#include "ptx/wgmma.cuh"

namespace gauntlet::lab::inline ceilings {
namespace {

constexpr int kWarpgroups = 2;
constexpr int kThreads = kWarpgroups * 128;
constexpr int kTileM = 64, kTileN = 256;
constexpr int kRowBytes = 128;  // of a K-major tile: 4 steps of 32 bytes
constexpr int kSteps = kRowBytes / 32;
constexpr int kStages = 4;
constexpr int kIterations = 2048;

struct alignas(1024) Stage {
  unsigned char a[kWarpgroups][kTileM * kRowBytes];
  unsigned char b[kTileN * kRowBytes];
};
constexpr int kSharedBytes = kStages * sizeof(Stage) + 1024;  // and room to align
static_assert(kSharedBytes <= 227 << 10);
static_assert(kStages * sizeof(Stage) <= kCudaGranule);

struct Bf16 {
  using Sum = float;
  static constexpr const char* kCeiling = "matrix_bf16";
  static constexpr int kDepth = 16;
  static constexpr RandomWords kWords = kRandomBf16;
  static __device__ __forceinline__ void multiply(Sum (&d)[128], std::uint64_t a, std::uint64_t b,
                                                  int scale_d) {
    ptx::wgmma_m64n256k16_bf16(d, a, b, scale_d);
  }
};

struct F16 {
  using Sum = float;
  static constexpr const char* kCeiling = "matrix_f16";
  static constexpr int kDepth = 16;
  static constexpr RandomWords kWords = kRandomF16;
  static __device__ __forceinline__ void multiply(Sum (&d)[128], std::uint64_t a, std::uint64_t b,
                                                  int scale_d) {
    ptx::wgmma_m64n256k16_f16(d, a, b, scale_d);
  }
};

struct Tf32 {
  using Sum = float;
  static constexpr const char* kCeiling = "matrix_tf32";
  static constexpr int kDepth = 8;
  static constexpr RandomWords kWords = kRandomF32;
  static __device__ __forceinline__ void multiply(Sum (&d)[128], std::uint64_t a, std::uint64_t b,
                                                  int scale_d) {
    ptx::wgmma_m64n256k8_tf32(d, a, b, scale_d);
  }
};

struct F8e4m3 {
  using Sum = float;
  static constexpr const char* kCeiling = "matrix_f8e4m3";
  static constexpr int kDepth = 32;
  static constexpr RandomWords kWords = kRandomF8e4m3;
  static __device__ __forceinline__ void multiply(Sum (&d)[128], std::uint64_t a, std::uint64_t b,
                                                  int scale_d) {
    ptx::wgmma_m64n256k32_f8e4m3(d, a, b, scale_d);
  }
};

struct I8 {
  using Sum = std::int32_t;
  static constexpr const char* kCeiling = "matrix_i8";
  static constexpr int kDepth = 32;
  static constexpr RandomWords kWords = kRandomI8;
  static __device__ __forceinline__ void multiply(Sum (&d)[128], std::uint64_t a, std::uint64_t b,
                                                  int scale_d) {
    ptx::wgmma_m64n256k32_i8(d, a, b, scale_d);
  }
};

template <class Type>
__global__ __launch_bounds__(kThreads, 1) void products(const uint4* operands,
                                                        typename Type::Sum* sink) {
  extern __shared__ unsigned char raw[];
  auto* stages = reinterpret_cast<Stage*>(raw + (1024 - ptx::shared_address(raw) % 1024) % 1024);
  auto* shared = reinterpret_cast<uint4*>(stages);
  for (int i = static_cast<int>(threadIdx.x); i < kStages * static_cast<int>(sizeof(Stage) / 16);
       i += kThreads) {
    shared[i] = operands[i];
  }
  ptx::fence_proxy_async_shared();
  __syncthreads();

  const int warpgroup = static_cast<int>(threadIdx.x) / 128;
  typename Type::Sum d[128];
  for (int iteration = 0; iteration < kIterations; ++iteration) {
    const Stage& stage = stages[iteration % kStages];
    const std::uint64_t a = ptx::wgmma_descriptor_128b(stage.a[warpgroup]);
    const std::uint64_t b = ptx::wgmma_descriptor_128b(stage.b);
    ptx::wgmma_fence();
#pragma unroll
    for (int step = 0; step < kSteps; ++step) {
      Type::multiply(d, a + 2 * step, b + 2 * step, iteration + step);
    }
    ptx::wgmma_commit_group();
    ptx::wgmma_wait_group<1>();
  }
  ptx::wgmma_wait_group<0>();

  typename Type::Sum all = 0;
#pragma unroll
  for (int i = 0; i < 128; ++i) all += d[i];
  sink[blockIdx.x * kThreads + threadIdx.x] = all;
}

template <class Type>
void add(std::vector<Probe>& probes, const CudaSpace& space) {
  cuda_check(cudaFuncSetAttribute(products<Type>, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                  kSharedBytes));
  const auto blocks = static_cast<unsigned>(space.num_sms);
  probes.push_back(
      {Type::kCeiling, "wgmma m64n256k" + std::to_string(Type::kDepth),
       1.0 * kIterations * kSteps * kWarpgroups * blocks * 2 * kTileM * kTileN * Type::kDepth,
       [=] {
         products<Type><<<blocks, kThreads, kSharedBytes, space.stream>>>(
             static_cast<const uint4*>(space.from), static_cast<typename Type::Sum*>(space.to));
         cuda_check(cudaGetLastError());
       },
       [=] { fill_random(space.from, kCudaGranule, Type::kWords, space.stream); }});
}

}  // namespace

std::vector<Probe> cuda_wgmma_probes(const CudaSpace& space) {
  std::vector<Probe> probes;
  if (space.capability != 90) return probes;
  add<Bf16>(probes, space);
  add<F16>(probes, space);
  add<Tf32>(probes, space);
  add<F8e4m3>(probes, space);
  add<I8>(probes, space);
  return probes;
}

}  // namespace gauntlet::lab::inline ceilings
