// The same loops over one tile of B at a time: the tile stays in cache while all rows of A pass by.
#include <algorithm>
#include <cstdint>

#include "catalog/ch07/tiled_matmul/pair.h"
#include "lab/author/side.h"

namespace gauntlet::ch07::tiled_matmul::cpu {
namespace {

constexpr int kTileRows = 16;
constexpr int kTileColumns = 256;
static_assert(kTileRows * kTileColumns * sizeof(float) <= 16 << 10, "half of a small L1");

}  // namespace

lab::Side optimized(const Params& p, const lab::Cpu&) {
  return [p] {
    std::fill_n(p.c, std::int64_t{p.m} * p.n, 0.0f);
    for (int first_column = 0; first_column < p.n; first_column += kTileColumns) {
      const int columns = std::min(kTileColumns, p.n - first_column);
      for (int first_row = 0; first_row < p.k; first_row += kTileRows) {
        const int last_row = std::min(first_row + kTileRows, p.k);
        for (int row = 0; row < p.m; ++row) {
          float* __restrict__ c = p.c + std::int64_t{row} * p.n + first_column;
          for (int i = first_row; i < last_row; ++i) {
            const float a = p.a[std::int64_t{row} * p.k + i];
            const float* __restrict__ b = p.b + std::int64_t{i} * p.n + first_column;
            for (int column = 0; column < columns; ++column) c[column] += a * b[column];
          }
        }
      }
    }
  };
}

}  // namespace gauntlet::ch07::tiled_matmul::cpu
