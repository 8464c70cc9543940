#include "load/workload/arrivals.h"

#include <utility>

#include "core/check.h"

namespace gauntlet::load::inline workload {
namespace {

constexpr std::uint64_t kStream = 0xA221;

}  // namespace

const char* name_of(ArrivalKind kind) {
  switch (kind) {
    case ArrivalKind::poisson:
      return "poisson";
    case ArrivalKind::fixed:
      return "fixed";
    case ArrivalKind::closed:
      return "closed";
    case ArrivalKind::trace:
      return "trace";
  }
  fail("arrivals without a name");
}

Arrivals::Arrivals(const ArrivalSpec& spec, std::uint64_t seed)
    : spec_(spec), variates_(seed, kStream) {
  check(spec.kind == ArrivalKind::poisson || spec.kind == ArrivalKind::fixed,
        "a closed loop and a trace have no arrivals of this kind");
  check(spec.rate_per_s > 0 && spec.burstiness > 0, "a rate and a burstiness are positive");
}

double Arrivals::next_s() {
  if (!std::exchange(begun_, true)) return 0;
  const double mean_gap_s = 1 / spec_.rate_per_s;
  at_s_ += spec_.kind == ArrivalKind::fixed
               ? mean_gap_s
               : variates_.gamma(spec_.burstiness, mean_gap_s / spec_.burstiness);
  return at_s_;
}

}  // namespace gauntlet::load::inline workload
