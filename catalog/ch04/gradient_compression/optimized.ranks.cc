// Messages of bf16, rounded to nearest, ties to even. They are added up in float32.
#include <bit>
#include <cstdint>
#include <memory>

#include "catalog/ch04/gradient_compression/pair.h"
#include "lab/author/linked.h"

namespace gauntlet::ch04::gradient_compression::ranks {
namespace {

struct ToBf16 {
  std::uint16_t operator()(float value) const {
    const auto bits = std::bit_cast<std::uint32_t>(value);
    return static_cast<std::uint16_t>((bits + 0x7FFF + (bits >> 16 & 1)) >> 16);
  }
};
struct FromBf16 {
  float operator()(std::uint16_t bits) const {
    return std::bit_cast<float>(std::uint32_t{bits} << 16);
  }
};

}  // namespace

lab::Side optimized(const Params& p, const lab::Ranks& ranks) {
  const auto linked = lab::linked(ranks, p.fabric);
  using Sum = WireSum<std::uint16_t, ToBf16, FromBf16>;
  const auto sum = std::make_shared<Sum>(p.count, ranks.size);
  return lab::counted(lab::sent_kib(linked),
                      [p, linked, sum] { (*sum)(*linked->group, p.gradients, p.sums); });
}

}  // namespace gauntlet::ch04::gradient_compression::ranks
