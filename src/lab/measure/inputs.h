// Which inputs a buffer set holds. Each timed sample gets new ones; now and then only some blocks
// of them are new, so that a side which looks at a few words to tell whether anything changed is
// wrong.
#pragma once
#include <cstdint>

#include "core/random.h"

namespace gauntlet::lab::inline measure {

/// Inputs change in blocks of this size.
inline constexpr std::int64_t kInputBlockBytes = 4096;

/// A plain value: device code takes it, too.
struct InputVersion {
  enum class Renewed { all, half, one };
  std::uint64_t seed = 0;   // of the blocks that were renewed last
  std::uint64_t older = 0;  // of the others
  Renewed renewed = Renewed::all;
  std::uint64_t draw = 0;   // decides which blocks were renewed
  std::int64_t blocks = 1;  // of all inputs that mix, counted through

  constexpr bool is_new(std::int64_t block) const {
    switch (renewed) {
      case Renewed::all:
        return true;
      case Renewed::half:
        return (mix64(draw ^ static_cast<std::uint64_t>(block)) & 1) != 0;
      case Renewed::one:
        return static_cast<std::uint64_t>(block) == draw % static_cast<std::uint64_t>(blocks);
    }
    return true;
  }
  /// Inputs whose parts belong together change only with all the others.
  constexpr std::uint64_t whole_seed() const { return renewed == Renewed::all ? seed : older; }
};

}  // namespace gauntlet::lab::inline measure
