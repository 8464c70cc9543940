// Comparing one output with what the reference expects of it: bit for bit, or within the error that
// its types and the length of its sums lead to.
#pragma once
#include <span>
#include <string>

#include "lab/author/binder.h"
#include "lab/author/reference.h"

namespace gauntlet::lab::inline measure {

struct Verdict {
  bool ok = true;
  std::string reason;  // for a person, when not ok
  /// Of the element that is nearest to its own bound: error and bound over the size of its sum.
  double max_error = 0;
  double bound = 0;
  double recomputed_percent = 100;  // of the elements, one by one
  double seen_percent = 100;        // by that, or by sums over all of them

  static Verdict refuse(std::string why) { return {.ok = false, .reason = std::move(why)}; }
};

/// The byte that outputs are poisoned with: NaN as a float.
inline constexpr unsigned char kPoison = 0xFF;

Verdict compare_output(const BufferSpec& output, std::span<const unsigned char> got,
                       const ExpectedOutput& expected);

}  // namespace gauntlet::lab::inline measure
