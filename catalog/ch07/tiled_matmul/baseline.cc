// Row by row, with a vectorised inner loop over adjacent columns: all of B passes by for each row
// of A.
#include <algorithm>
#include <cstdint>

#include "catalog/ch07/tiled_matmul/pair.h"
#include "lab/author/side.h"

namespace gauntlet::ch07::tiled_matmul::cpu {

lab::Side baseline(const Params& p, const lab::Cpu&) {
  return [p] {
    std::fill_n(p.c, std::int64_t{p.m} * p.n, 0.0f);
    for (int row = 0; row < p.m; ++row) {
      float* __restrict__ c = p.c + std::int64_t{row} * p.n;
      for (int i = 0; i < p.k; ++i) {
        const float a = p.a[std::int64_t{row} * p.k + i];
        const float* __restrict__ b = p.b + std::int64_t{i} * p.n;
        for (int column = 0; column < p.n; ++column) c[column] += a * b[column];
      }
    }
  };
}

}  // namespace gauntlet::ch07::tiled_matmul::cpu
