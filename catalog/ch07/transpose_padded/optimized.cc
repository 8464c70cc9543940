// The same loops inside tiles: 64 rows of 64 columns are 16 KiB of input, which stay cached until
// they are used up, and touch 64 pages instead of one page per row of the matrix.
#include <algorithm>

#include "catalog/ch07/transpose_padded/pair.h"
#include "lab/author/side.h"

namespace gauntlet::ch07::transpose_padded::cpu {
namespace {

constexpr std::int64_t kTile = 64;

}  // namespace

lab::Side optimized(const Params& p, const lab::Cpu&) {
  return [p] {
    for (std::int64_t tile_column = 0; tile_column < p.columns; tile_column += kTile) {
      const std::int64_t columns_end = std::min(tile_column + kTile, p.columns);
      for (std::int64_t tile_row = 0; tile_row < p.rows; tile_row += kTile) {
        const std::int64_t rows_end = std::min(tile_row + kTile, p.rows);
        for (std::int64_t column = tile_column; column < columns_end; ++column) {
          for (std::int64_t row = tile_row; row < rows_end; ++row) {
            p.out[column * p.rows + row] = p.in[row * p.columns + column];
          }
        }
      }
    }
  };
}

}  // namespace gauntlet::ch07::transpose_padded::cpu
