// The whole batch at once: the pool is forked once, and the workers share the products.
#include <algorithm>

#include "catalog/ch01/batched_gemm/pair.h"
#include "core/os/threads.h"
#include "lab/author/counted.h"

namespace gauntlet::ch01::batched_gemm::cpu {
namespace {

void multiply_rows(const Params& p, std::int64_t product, std::int64_t begin, std::int64_t end) {
  const std::int64_t matrix = product * p.size * p.size;
  for (std::int64_t row = begin; row < end; ++row) {
    const float* a = p.a + matrix + row * p.size;
    float* c = p.c + matrix + row * p.size;
    std::fill_n(c, p.size, 0.0f);
    for (std::int64_t k = 0; k < p.size; ++k) {
      const float factor = a[k];
      const float* b = p.b + matrix + k * p.size;
      for (std::int64_t column = 0; column < p.size; ++column) c[column] += factor * b[column];
    }
  }
}

}  // namespace

lab::Side optimized(const Params& p, const lab::Cpu& cpu) {
  auto side = lab::counted(lab::forks_of(cpu.pool), [p, pool = cpu.pool] {
    pool->for_ranges(p.batch, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t product = begin; product < end; ++product) {
        multiply_rows(p, product, 0, p.size);
      }
    });
  });
  side.facts = {{"threads", static_cast<double>(cpu.pool->size())}};
  return side;
}

}  // namespace gauntlet::ch01::batched_gemm::cpu
