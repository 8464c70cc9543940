// Products on a CPU that skip a part of their rows, or carry fewer bits than they claim.
#include <algorithm>
#include <bit>
#include <cstdint>
#include <memory>
#include <vector>

#include "tests/lies/lie.h"

namespace gauntlet::lies {
namespace {

/// Rounded to so many mantissa bits, to nearest.
float rounded(float value, int bits) {
  const auto drop = static_cast<unsigned>(23 - bits);
  auto word = std::bit_cast<std::uint32_t>(value);
  word += (1u << drop >> 1);
  word &= ~((1u << drop) - 1);
  return std::bit_cast<float>(word);
}

void multiply_rows(const ProductParams& p, std::int64_t begin, std::int64_t end) {
  for (std::int64_t i = begin; i < end; ++i) {
    float* c = p.c + i * p.n;
    std::fill_n(c, p.n, 0.0f);
    for (std::int64_t k = 0; k < p.n; ++k) {
      const float a = p.a[i * p.n + k];
      for (std::int64_t j = 0; j < p.n; ++j) c[j] += a * p.b[k * p.n + j];
    }
  }
}

void multiply_rounded(const ProductParams& p, int bits) {
  const auto size = static_cast<std::size_t>(p.n * p.n);
  std::vector<float> a(size), b(size);
  std::transform(p.a, p.a + size, a.begin(), [bits](float v) { return rounded(v, bits); });
  std::transform(p.b, p.b + size, b.begin(), [bits](float v) { return rounded(v, bits); });
  multiply_rows({a.data(), b.data(), p.c, p.n}, 0, p.n);
}

lab::Side product_honest(const ProductParams& p, const lab::Cpu&) {
  return [p] { multiply_rows(p, 0, p.n); };
}

/// One row in so many is the one before: no element is missing, and samples of rows may miss it.
template <int one_in>
lab::Side product_repeats_rows(const ProductParams& p, const lab::Cpu&) {
  return [p] {
    for (std::int64_t i = 0; i < p.n; ++i) {
      if (i % one_in == one_in - 1) {
        std::copy_n(p.c + (i - 1) * p.n, p.n, p.c + i * p.n);
      } else {
        multiply_rows(p, i, i + 1);
      }
    }
  };
}

/// Leaves the last quarter as it was.
lab::Side product_skips_rows(const ProductParams& p, const lab::Cpu&) {
  return [p] { multiply_rows(p, 0, p.n / 4 * 3); };
}

/// Claims float32 and cuts its operands to what a tf32 tensor core would take.
lab::Side product_by_tf32(const ProductParams& p, const lab::Cpu&) {
  return [p] { multiply_rounded(p, 10); };
}

lab::Side tf32_product_honest(const ProductParams& p, const lab::Cpu&) {
  return [p] { multiply_rounded(p, 10); };
}
lab::Side tf32_product_by_bf16(const ProductParams& p, const lab::Cpu&) {
  return [p] { multiply_rounded(p, 7); };
}
lab::Side tf32_product_of_5_bits(const ProductParams& p, const lab::Cpu&) {
  return [p] { multiply_rounded(p, 5); };
}

}  // namespace

lab::Side cpu_product(const ProductParams& p, const lab::Cpu&) {
  return [p] {
    for (int pass = 0; pass < 4; ++pass) {
      multiply_rows(p, 0, p.n);
      asm volatile("" : : : "memory");
    }
  };
}

std::vector<CpuLie<ProductParams>> cpu_product_lies() {
  return {{"product_honest", product_honest},
          {"product_repeats_rows", product_repeats_rows<2>},
          {"product_repeats_few_rows", product_repeats_rows<16>},
          {"product_skips_rows", product_skips_rows},
          {"product_by_tf32", product_by_tf32},
          {"tf32_product_honest", tf32_product_honest},
          {"tf32_product_by_bf16", tf32_product_by_bf16},
          {"tf32_product_of_5_bits", tf32_product_of_5_bits}};
}

}  // namespace gauntlet::lies
