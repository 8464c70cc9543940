#include "load/workload/variates.h"

#include <cmath>
#include <numbers>

#include "core/check.h"

namespace gauntlet::load::inline workload {

double Variates::unit() { return (static_cast<double>(random_.next() >> 11) + 0.5) * 0x1p-53; }

double Variates::normal() {
  const double radius = std::sqrt(-2 * std::log(unit()));
  return radius * std::cos(2 * std::numbers::pi * unit());
}

/// Marsaglia and Tsang's rejection (2000); below shape 1 by their power of a uniform.
double Variates::gamma(double shape, double scale) {
  check(shape > 0 && scale > 0, "a gamma distribution has a positive shape and scale");
  if (shape < 1) return gamma(shape + 1, scale) * std::pow(unit(), 1 / shape);
  const double d = shape - 1.0 / 3;
  const double c = 1 / std::sqrt(9 * d);
  while (true) {
    const double x = normal();
    const double v = std::pow(1 + c * x, 3);
    if (v > 0 && std::log(unit()) < x * x / 2 + d - d * v + d * std::log(v)) return d * v * scale;
  }
}

std::int64_t Variates::integer(std::int64_t low, std::int64_t high) {
  check(low <= high, "an empty range");
  return low +
         static_cast<std::int64_t>(random_.next_below(static_cast<std::uint64_t>(high - low) + 1));
}

}  // namespace gauntlet::load::inline workload
