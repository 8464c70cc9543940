// The same tiles of B; within them, 4 x 16 sums stay in registers while a tile passes by, so that
// each loaded vector of B serves four rows and C is touched once per tile.
#include <algorithm>
#include <cstdint>

#include "catalog/ch09/register_tiling/pair.h"
#include "lab/author/side.h"

namespace gauntlet::ch09::register_tiling::cpu {
namespace {

constexpr int kTileRows = 64;
constexpr int kTileColumns = 128;
static_assert(kTileRows * kTileColumns * sizeof(float) <= 32 << 10, "one L1");

// Said as vectors: of an array of sums, gcc 12 keeps half on the stack. Words may lie anywhere.
using Vector [[gnu::vector_size(32), gnu::aligned(4), gnu::may_alias]] = float;
constexpr int kLanes = 8;
constexpr int kSumRows = 4;
constexpr int kSumVectors = 2;
constexpr int kSumColumns = kSumVectors * kLanes;

/// Adds to a 4 x 16 tile of C what rows [first, last) of B give.
void add_to_tile(const Params& p, int row, int column, int first, int last) {
  Vector sums[kSumRows][kSumVectors] = {};
  for (int i = first; i < last; ++i) {
    const auto* b = reinterpret_cast<const Vector*>(p.b + std::int64_t{i} * p.n + column);
    for (int y = 0; y < kSumRows; ++y) {
      const float a = p.a[std::int64_t{row + y} * p.k + i];
      for (int x = 0; x < kSumVectors; ++x) sums[y][x] += a * b[x];
    }
  }
  for (int y = 0; y < kSumRows; ++y) {
    auto* c = reinterpret_cast<Vector*>(p.c + std::int64_t{row + y} * p.n + column);
    for (int x = 0; x < kSumVectors; ++x) c[x] += sums[y][x];
  }
}

}  // namespace

lab::Side optimized(const Params& p, const lab::Cpu&) {
  return [p] {
    std::fill_n(p.c, std::int64_t{p.m} * p.n, 0.0f);
    for (int first_column = 0; first_column < p.n; first_column += kTileColumns) {
      const int last_column = std::min(first_column + kTileColumns, p.n);
      for (int first = 0; first < p.k; first += kTileRows) {
        const int last = std::min(first + kTileRows, p.k);
        for (int row = 0; row < p.m; row += kSumRows) {
          for (int column = first_column; column < last_column; column += kSumColumns) {
            add_to_tile(p, row, column, first, last);
          }
        }
      }
    }
  };
}

}  // namespace gauntlet::ch09::register_tiling::cpu
