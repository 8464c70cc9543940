// Random variates that come out the same on every machine for a seed; the standard library's do
// not.
#pragma once
#include <cstdint>

#include "core/random.h"

namespace gauntlet::load::inline workload {

class Variates {
 public:
  /// Streams of one seed are independent of each other.
  Variates(std::uint64_t seed, std::uint64_t stream) : random_(mix64(seed) ^ stream) {}

  /// In (0, 1), 53 bits.
  double unit();
  double normal();
  /// Mean shape * scale, variance shape * scale².
  double gamma(double shape, double scale);
  /// In [low, high].
  std::int64_t integer(std::int64_t low, std::int64_t high);

 private:
  Random random_;
};

}  // namespace gauntlet::load::inline workload
