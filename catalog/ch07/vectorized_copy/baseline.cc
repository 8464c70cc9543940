// One float per load and store. Left alone, a compiler would vectorise this loop or call memcpy:
// opaque() keeps the width as written.
#include "catalog/ch07/vectorized_copy/pair.h"
#include "core/opaque.h"
#include "lab/author/side.h"

namespace gauntlet::ch07::vectorized_copy::cpu {
namespace {

void copy(const float* from, float* to, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) to[i] = opaque(from[i]);
}

}  // namespace

lab::Side baseline(const Params& p, const lab::Cpu&) {
  return [p] {
    for (std::int64_t i = 0; i < p.passes; ++i) {
      const Pass pass = pass_of(p, i);
      copy(pass.from + pass.shift, pass.to, p.count - pass.shift);
      copy(pass.from, pass.to + p.count - pass.shift, pass.shift);
    }
  };
}

}  // namespace gauntlet::ch07::vectorized_copy::cpu
