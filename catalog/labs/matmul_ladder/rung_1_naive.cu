// A thread per sum: it goes along a row of either operand, eight elements at a time.
#include <cuda_runtime.h>

#include <cstdint>

#include "catalog/labs/matmul_ladder/bf16_pairs.cuh"
#include "catalog/labs/matmul_ladder/lab.h"
#include "core/cuda/check.h"
#include "lab/author/side.h"

namespace gauntlet::labs::matmul_ladder::cuda {
namespace {

constexpr int kSquare = 16;  // rows and columns of C per block
constexpr int kWords = 8;    // elements in 16 bytes

__global__ void __launch_bounds__(kSquare* kSquare) sum_each(Params p) {
  const std::int64_t row = std::int64_t{blockIdx.y} * kSquare + threadIdx.y;
  const std::int64_t column = std::int64_t{blockIdx.x} * kSquare + threadIdx.x;
  const auto* a = reinterpret_cast<const uint4*>(p.a + row * p.k);
  const auto* b = reinterpret_cast<const uint4*>(p.b + column * p.k);
  float sum = 0;
  for (int i = 0; i < p.k / kWords; ++i) {
    const uint4 x = a[i], y = b[i];
    sum += lower(x.x) * lower(y.x) + upper(x.x) * upper(y.x);
    sum += lower(x.y) * lower(y.y) + upper(x.y) * upper(y.y);
    sum += lower(x.z) * lower(y.z) + upper(x.z) * upper(y.z);
    sum += lower(x.w) * lower(y.w) + upper(x.w) * upper(y.w);
  }
  p.c[row * p.n + column] = to_bf16(sum);
}

}  // namespace

lab::Side naive(const Params& p, const lab::Cuda& cuda) {
  return [p, stream = cuda.stream] {
    sum_each<<<dim3(p.n / kSquare, p.m / kSquare), dim3(kSquare, kSquare), 0, stream>>>(p);
    cuda_check(cudaGetLastError());
  };
}

}  // namespace gauntlet::labs::matmul_ladder::cuda
