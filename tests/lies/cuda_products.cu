// Products on a GPU that skip a part of their rows, or carry fewer bits than they claim.
#include "tests/lies/lie.h"
#include "tests/lies/scale.cuh"

namespace gauntlet::lies {
namespace {

constexpr int kTile = 16;

/// Rounded to so many mantissa bits, to nearest; 23 is as it is.
__device__ float rounded(float value, int bits) {
  const unsigned drop = 23u - static_cast<unsigned>(bits);
  const unsigned word = __float_as_uint(value) + (1u << drop >> 1);
  return __uint_as_float(word & ~((1u << drop) - 1));
}

enum class Rows { all, first_three_quarters, half_repeated, few_repeated };

__global__ void multiply(ProductParams p, int bits, Rows rows) {
  const std::int64_t j = std::int64_t{blockIdx.x} * kTile + threadIdx.x;
  std::int64_t i = std::int64_t{blockIdx.y} * kTile + threadIdx.y;
  if (i >= p.n || j >= p.n) return;
  if (rows == Rows::first_three_quarters && i >= p.n / 4 * 3) return;
  const std::int64_t out = i;
  if (rows == Rows::half_repeated) i -= i % 2;
  if (rows == Rows::few_repeated && i % 16 == 15) --i;
  float sum = 0;
  for (std::int64_t k = 0; k < p.n; ++k) {
    sum += rounded(p.a[i * p.n + k], bits) * rounded(p.b[k * p.n + j], bits);
  }
  p.c[out * p.n + j] = sum;
}

void launch(const ProductParams& p, cudaStream_t stream, int bits, Rows rows = Rows::all) {
  const auto tiles = static_cast<unsigned>((p.n + kTile - 1) / kTile);
  multiply<<<dim3(tiles, tiles), dim3(kTile, kTile), 0, stream>>>(p, bits, rows);
  cuda_check(cudaGetLastError());
}

template <int bits, Rows rows = Rows::all>
lab::Side product(const ProductParams& p, const lab::Cuda& cuda) {
  return [p, stream = cuda.stream] { launch(p, stream, bits, rows); };
}

}  // namespace

lab::Side cuda_product(const ProductParams& p, const lab::Cuda& cuda) {
  return [p, stream = cuda.stream] {
    for (int pass = 0; pass < 4; ++pass) launch(p, stream, 23);
  };
}

std::vector<CudaLie<ProductParams>> cuda_product_lies() {
  return {{"product_honest", product<23>},
          {"product_repeats_rows", product<23, Rows::half_repeated>},
          {"product_repeats_few_rows", product<23, Rows::few_repeated>},
          {"product_skips_rows", product<23, Rows::first_three_quarters>},
          {"product_by_tf32", product<10>},
          {"tf32_product_honest", product<10>},
          {"tf32_product_by_bf16", product<7>},
          {"tf32_product_of_5_bits", product<5>}};
}

}  // namespace gauntlet::lies
