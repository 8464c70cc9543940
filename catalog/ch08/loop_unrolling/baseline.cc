// One accumulator: the language fixes the order of float additions, so each waits for the last.
#include "catalog/ch08/loop_unrolling/pair.h"
#include "lab/author/side.h"

namespace gauntlet::ch08::loop_unrolling::cpu {

lab::Side baseline(const Params& p, const lab::Cpu&) {
  return [p] {
    for (std::int64_t column = 0; column < p.columns; ++column) {
      const float* in = p.in + column;
      float sum = 0;
      for (std::int64_t row = 0; row < p.rows; ++row) sum += in[row * p.columns];
      p.out[column] = sum;
    }
  };
}

}  // namespace gauntlet::ch08::loop_unrolling::cpu
