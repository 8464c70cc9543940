#include "stats/interval.h"

namespace gauntlet::stats {

Interval ratio(const Interval& a, const Interval& b) {
  if (!(a.value > 0) || !(b.value > 0)) return {};
  Interval ratio{.value = b.value / a.value};
  if (!a.known() || !b.known() || !(a.lo > 0) || !(b.lo > 0)) return ratio;
  const double down = std::hypot(std::log(b.value / b.lo), std::log(a.hi / a.value));
  const double up = std::hypot(std::log(b.hi / b.value), std::log(a.value / a.lo));
  ratio.lo = ratio.value * std::exp(-down);
  ratio.hi = ratio.value * std::exp(up);
  return ratio;
}

}  // namespace gauntlet::stats
