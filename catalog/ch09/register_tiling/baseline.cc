// Tiles of B that stay in the first-level cache for all rows of A; each product is added to C where
// it lies, also in that cache.
#include <algorithm>
#include <cstdint>

#include "catalog/ch09/register_tiling/pair.h"
#include "lab/author/side.h"

namespace gauntlet::ch09::register_tiling::cpu {
namespace {

constexpr int kTileRows = 64;
constexpr int kTileColumns = 128;
static_assert(kTileRows * kTileColumns * sizeof(float) <= 32 << 10, "one L1");

}  // namespace

lab::Side baseline(const Params& p, const lab::Cpu&) {
  return [p] {
    std::fill_n(p.c, std::int64_t{p.m} * p.n, 0.0f);
    for (int first_column = 0; first_column < p.n; first_column += kTileColumns) {
      const int columns = std::min(kTileColumns, p.n - first_column);
      for (int first = 0; first < p.k; first += kTileRows) {
        const int last = std::min(first + kTileRows, p.k);
        for (int row = 0; row < p.m; ++row) {
          float* __restrict__ c = p.c + std::int64_t{row} * p.n + first_column;
          for (int i = first; i < last; ++i) {
            const float a = p.a[std::int64_t{row} * p.k + i];
            const float* __restrict__ b = p.b + std::int64_t{i} * p.n + first_column;
            for (int column = 0; column < columns; ++column) c[column] += a * b[column];
          }
        }
      }
    }
  };
}

}  // namespace gauntlet::ch09::register_tiling::cpu
