// One vector register per load and store; the count is a multiple of its words.
#include <cstring>

#include "catalog/ch07/vectorized_copy/pair.h"
#include "core/opaque.h"
#include "lab/author/side.h"

namespace gauntlet::ch07::vectorized_copy::cpu {
namespace {

#ifdef __AVX__
constexpr int kVectorBytes = 32;
#else
constexpr int kVectorBytes = 16;
#endif
constexpr std::int64_t kLanes = kVectorBytes / sizeof(float);
static_assert(kShift % kLanes == 0);

using Vector [[gnu::vector_size(kVectorBytes)]] = float;

void copy(const float* from, float* to, std::int64_t count) {
  for (std::int64_t i = 0; i < count; i += kLanes) {
    Vector v;
    std::memcpy(&v, from + i, sizeof(v));
    v = opaque(v);
    std::memcpy(to + i, &v, sizeof(v));
  }
}

}  // namespace

lab::Side optimized(const Params& p, const lab::Cpu&) {
  return [p] {
    for (std::int64_t i = 0; i < p.passes; ++i) {
      const Pass pass = pass_of(p, i);
      copy(pass.from + pass.shift, pass.to, p.count - pass.shift);
      copy(pass.from, pass.to + p.count - pass.shift, pass.shift);
    }
  };
}

}  // namespace gauntlet::ch07::vectorized_copy::cpu
