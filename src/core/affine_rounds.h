// Work of a chosen length whose result takes two operations to check: rounds of x · factor + 1, for
// sides whose subject is when work is done and not what it is.
#pragma once
#include <cstdint>

namespace gauntlet {

/// One round. The factor is made odd, so that no bit of x is lost however many follow.
constexpr std::uint32_t affine_round(std::uint32_t x, std::uint32_t factor) {
  return x * (factor | 1u) + 1u;
}

/// What rounds come to together.
struct AffineRounds {
  std::uint32_t factor = 1;
  std::uint32_t offset = 0;

  constexpr void add(std::uint32_t round_factor) {
    factor *= round_factor | 1u;
    offset = affine_round(offset, round_factor);
  }
  constexpr std::uint32_t operator()(std::uint32_t x) const { return x * factor + offset; }
};

}  // namespace gauntlet
