// How many multiply-adds do the vector units do? Independent chains in registers at full occupancy.
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include <type_traits>

#include "core/cuda/check.h"
#include "lab/ceilings/ceilings_cuda.h"

namespace gauntlet::lab::inline ceilings {
namespace {

constexpr int kThreads = 256;
constexpr int kChains = 8;
constexpr int kIterations = 8192;

__device__ __forceinline__ float multiply_add(float s, float a, float b) { return fmaf(s, a, b); }
__device__ __forceinline__ double multiply_add(double s, double a, double b) {
  return fma(s, a, b);
}
__device__ __forceinline__ int multiply_add(int s, int a, int b) { return s * a + b; }
__device__ __forceinline__ __half2 multiply_add(__half2 s, __half2 a, __half2 b) {
  return __hfma2(s, a, b);
}
__device__ __forceinline__ __nv_bfloat162 multiply_add(__nv_bfloat162 s, __nv_bfloat162 a,
                                                       __nv_bfloat162 b) {
  return __hfma2(s, a, b);
}

/// Every bit counts: what the check at the end cannot see would not be computed.
template <class T>
__device__ __forceinline__ unsigned bits_of(T value) {
  unsigned words[sizeof(T) / 4];
  memcpy(words, &value, sizeof(T));
  unsigned all = 0;
  for (unsigned word : words) all = all * 31 + word;
  return all;
}

template <class T>
struct Operands {
  T factor;  // magnitude below 1: sums stay finite
  T term;
  T start[kChains];  // all different: equal chains would be computed once
};

template <class T>
__global__ __launch_bounds__(kThreads) void multiply_adds(Operands<T> operands, unsigned* sink) {
  T sums[kChains];
#pragma unroll
  for (int chain = 0; chain < kChains; ++chain) {
    sums[chain] = threadIdx.x % 2 == 0 ? operands.start[chain] : operands.term;
  }
#pragma unroll 4
  for (int i = 0; i < kIterations; ++i) {
#pragma unroll
    for (int chain = 0; chain < kChains; ++chain) {
      sums[chain] = multiply_add(sums[chain], operands.factor, operands.term);
    }
  }
  unsigned all = 0;
#pragma unroll
  for (int chain = 0; chain < kChains; ++chain) all += bits_of(sums[chain]) * (chain + 1u);
  if (all == 0x9E3779B9u) *sink = all;
}

template <class T, class Convert>
void add(std::vector<Probe>& probes, const char* ceiling, const CudaSpace& space, Convert convert) {
  Operands<T> operands{convert(-0.9921875f), convert(1.40625f), {}};  // exact in every type
  for (int chain = 0; chain < kChains; ++chain) operands.start[chain] = convert(0.25f * chain);
  constexpr int kLanes = sizeof(T) == 4 && !std::is_arithmetic_v<T> ? 2 : 1;
  const auto blocks = static_cast<unsigned>(space.num_sms * (space.max_threads_per_sm / kThreads));
  probes.push_back({ceiling, std::to_string(kChains) + " chains per thread",
                    2.0 * kLanes * kChains * kIterations * kThreads * blocks, [=] {
                      multiply_adds<T><<<blocks, kThreads, 0, space.stream>>>(
                          operands, static_cast<unsigned*>(space.to));
                      cuda_check(cudaGetLastError());
                    }});
}

}  // namespace

std::vector<Probe> cuda_fma_probes(const CudaSpace& space) {
  std::vector<Probe> probes;
  add<float>(probes, "fma_f32", space, [](float x) { return x; });
  add<double>(probes, "fma_f64", space, [](float x) { return static_cast<double>(x); });
  add<__half2>(probes, "fma_f16", space, [](float x) { return __float2half2_rn(x); });
  add<__nv_bfloat162>(probes, "fma_bf16", space, [](float x) { return __float2bfloat162_rn(x); });
  add<int>(probes, "fma_i32", space, [](float x) { return static_cast<int>(x * 40503.0f) | 1; });
  return probes;
}

}  // namespace gauntlet::lab::inline ceilings
