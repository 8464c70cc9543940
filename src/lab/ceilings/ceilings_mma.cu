// How fast are tensor cores through mma.sync? Operands stay in registers, so nothing else can limit
// them. On Hopper only wgmma reaches the full rate.
#include <cuda_runtime.h>

#include "core/cuda/check.h"
#include "lab/ceilings/ceilings_cuda.h"
#include "ptx/mma.cuh"

namespace gauntlet::lab::inline ceilings {
namespace {

constexpr int kThreads = 256;
constexpr int kBlocksPerSm = 2;
constexpr int kRows = 2;     // fragments of a
constexpr int kColumns = 4;  // fragments of b: 8 independent products
constexpr int kIterations = 2048;

struct Bf16 {
  using Sum = float;
  static constexpr const char* kCeiling = "matrix_bf16";
  static constexpr int kDepth = 16;
  static constexpr RandomWords kWords = kRandomBf16;
  static __device__ void multiply(Sum (&d)[4], const std::uint32_t (&a)[4],
                                  const std::uint32_t (&b)[2]) {
    ptx::mma_m16n8k16_bf16(d, a, b);
  }
};

struct F16 {
  using Sum = float;
  static constexpr const char* kCeiling = "matrix_f16";
  static constexpr int kDepth = 16;
  static constexpr RandomWords kWords = kRandomF16;
  static __device__ void multiply(Sum (&d)[4], const std::uint32_t (&a)[4],
                                  const std::uint32_t (&b)[2]) {
    ptx::mma_m16n8k16_f16(d, a, b);
  }
};

struct Tf32 {
  using Sum = float;
  static constexpr const char* kCeiling = "matrix_tf32";
  static constexpr int kDepth = 8;
  static constexpr RandomWords kWords = kRandomF32;
  static __device__ void multiply(Sum (&d)[4], const std::uint32_t (&a)[4],
                                  const std::uint32_t (&b)[2]) {
    ptx::mma_m16n8k8_tf32(d, a, b);
  }
};

struct F8e4m3 {
  using Sum = float;
  static constexpr const char* kCeiling = "matrix_f8e4m3";
  static constexpr int kDepth = 32;
  static constexpr RandomWords kWords = kRandomF8e4m3;
  static __device__ void multiply(Sum (&d)[4], const std::uint32_t (&a)[4],
                                  const std::uint32_t (&b)[2]) {
// The PTX for other GPUs is compiled for sm_80, which has no f8.
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 890
    ptx::mma_m16n8k32_f8e4m3(d, a, b);
#endif
  }
};

struct I8 {
  using Sum = std::int32_t;
  static constexpr const char* kCeiling = "matrix_i8";
  static constexpr int kDepth = 32;
  static constexpr RandomWords kWords = kRandomI8;
  static __device__ void multiply(Sum (&d)[4], const std::uint32_t (&a)[4],
                                  const std::uint32_t (&b)[2]) {
    ptx::mma_m16n8k32_i8(d, a, b);
  }
};

template <class Type>
__global__ __launch_bounds__(kThreads) void products(const std::uint32_t* operands,
                                                     typename Type::Sum* sink) {
  std::uint32_t a[kRows][4], b[kColumns][2];
  typename Type::Sum d[kRows][kColumns][4] = {};
  const std::uint32_t* mine = operands + threadIdx.x;
#pragma unroll
  for (int row = 0; row < kRows; ++row) {
#pragma unroll
    for (int i = 0; i < 4; ++i, mine += kThreads) a[row][i] = *mine;
  }
#pragma unroll
  for (int column = 0; column < kColumns; ++column) {
#pragma unroll
    for (int i = 0; i < 2; ++i, mine += kThreads) b[column][i] = *mine;
  }
  for (int iteration = 0; iteration < kIterations; ++iteration) {
#pragma unroll
    for (int row = 0; row < kRows; ++row) {
#pragma unroll
      for (int column = 0; column < kColumns; ++column) {
        Type::multiply(d[row][column], a[row], b[column]);
      }
    }
  }
  typename Type::Sum all = 0;
#pragma unroll
  for (int i = 0; i < kRows * kColumns * 4; ++i) all += (&d[0][0][0])[i];
  sink[blockIdx.x * kThreads + threadIdx.x] = all;
}

constexpr int kDoubleChains = 8;

__global__ __launch_bounds__(kThreads) void products_f64(const double* operands, double* sink) {
  double d[kDoubleChains][2] = {};
  double a[2] = {operands[threadIdx.x], operands[kThreads + threadIdx.x]};
  double b[4];
#pragma unroll
  for (int i = 0; i < 4; ++i) b[i] = operands[(2 + i) * kThreads + threadIdx.x];
  for (int iteration = 0; iteration < kIterations; ++iteration) {
#pragma unroll
    for (int chain = 0; chain < kDoubleChains; ++chain) {
      ptx::mma_m8n8k4_f64(d[chain], a[chain / 4], b[chain % 4]);
    }
  }
  double all = 0;
#pragma unroll
  for (int chain = 0; chain < kDoubleChains; ++chain) all += d[chain][0] + d[chain][1];
  sink[blockIdx.x * kThreads + threadIdx.x] = all;
}

template <class Type>
void add(std::vector<Probe>& probes, const CudaSpace& space) {
  const auto blocks = static_cast<unsigned>(space.num_sms * kBlocksPerSm);
  const double products_per_warp = 1.0 * kIterations * kRows * kColumns;
  probes.push_back({Type::kCeiling, "mma.sync m16n8k" + std::to_string(Type::kDepth),
                    products_per_warp * (kThreads / 32) * blocks * 2 * 16 * 8 * Type::kDepth,
                    [=] {
                      products<Type><<<blocks, kThreads, 0, space.stream>>>(
                          static_cast<const std::uint32_t*>(space.from),
                          static_cast<typename Type::Sum*>(space.to));
                      cuda_check(cudaGetLastError());
                    },
                    [=] { fill_random(space.from, kCudaGranule, Type::kWords, space.stream); }});
}

}  // namespace

std::vector<Probe> cuda_mma_probes(const CudaSpace& space) {
  std::vector<Probe> probes;
  if (space.capability < 80) return probes;
  add<Bf16>(probes, space);
  add<F16>(probes, space);
  add<Tf32>(probes, space);
  if (space.capability == 90) add<F8e4m3>(probes, space);
  add<I8>(probes, space);
  const auto blocks = static_cast<unsigned>(space.num_sms * kBlocksPerSm);
  probes.push_back({"matrix_f64", "mma.sync m8n8k4",
                    1.0 * kIterations * kDoubleChains * (kThreads / 32) * blocks * 2 * 8 * 8 * 4,
                    [=] {
                      products_f64<<<blocks, kThreads, 0, space.stream>>>(
                          static_cast<const double*>(space.from), static_cast<double*>(space.to));
                      cuda_check(cudaGetLastError());
                    },
                    [=] { fill_random(space.from, kCudaGranule, kRandomF32, space.stream); }});
  return probes;
}

}  // namespace gauntlet::lab::inline ceilings
