// Row by row of the output, so down the columns of the input: every load is on another cache line.
#include "catalog/ch07/transpose_padded/pair.h"
#include "lab/author/side.h"

namespace gauntlet::ch07::transpose_padded::cpu {

lab::Side baseline(const Params& p, const lab::Cpu&) {
  return [p] {
    for (std::int64_t column = 0; column < p.columns; ++column) {
      for (std::int64_t row = 0; row < p.rows; ++row) {
        p.out[column * p.rows + row] = p.in[row * p.columns + column];
      }
    }
  };
}

}  // namespace gauntlet::ch07::transpose_padded::cpu
