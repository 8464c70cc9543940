// One float per load and store. Left alone, a compiler would vectorise this loop or call memcpy:
// opaque() keeps the width as written.
#include "catalog/ch07/vectorized_copy/pair.h"
#include "core/opaque.h"
#include "lab/author/side.h"

namespace gauntlet::ch07::vectorized_copy::cpu {

lab::Side baseline(const Params& p, const lab::Cpu&) {
  return [p] {
    for (std::int64_t pass = 0; pass < p.passes; ++pass) {
      for (std::int64_t i = 0; i < p.count; ++i) p.out[i] = opaque(p.in[i]);
    }
  };
}

}  // namespace gauntlet::ch07::vectorized_copy::cpu
