// Column by column through a row-major matrix: every access is one row apart.
#include "catalog/ch07/coalesced_copy/pair.h"
#include "core/opaque.h"
#include "lab/author/side.h"

namespace gauntlet::ch07::coalesced_copy::cpu {

lab::Side baseline(const Params& p, const lab::Cpu&) {
  return [p] {
    for (std::int64_t column = 0; column < p.columns; ++column) {
      for (std::int64_t row = 0; row < p.rows; ++row) {
        p.out[row * p.columns + column] = opaque(p.in[row * p.columns + column]);
      }
    }
  };
}

}  // namespace gauntlet::ch07::coalesced_copy::cpu
