// Interval: a value with its 95% interval, wherever one is kept, compared or printed.
#pragma once
#include <cmath>
#include <limits>

namespace gauntlet::stats {

struct Interval {
  double value = 0;
  /// NaN where too little was measured to give an interval.
  double lo = std::numeric_limits<double>::quiet_NaN();
  double hi = std::numeric_limits<double>::quiet_NaN();

  bool known() const { return lo <= hi; }
  /// Half the width over the value; infinite where the interval is not known.
  double relative_half_width() const {
    return known() && value != 0 ? (hi - lo) / 2 / std::abs(value)
                                 : std::numeric_limits<double>::infinity();
  }
  /// The same quantity in another unit.
  Interval times(double factor) const { return {value * factor, lo * factor, hi * factor}; }
};

/// `amount` per what the interval measures: tokens over seconds.
inline Interval rate(double amount, const Interval& of) {
  return {amount / of.value, amount / of.hi, amount / of.lo};
}

/// b/a of two that were measured apart: distances from the values add in squares on the
/// logarithmic scale (Donner and Zou's MOVER). Not known where either is not, or is not positive.
Interval ratio(const Interval& a, const Interval& b);

}  // namespace gauntlet::stats
