// When requests come: gaps between arrivals, chosen ahead and never by how fast answers come.
#pragma once
#include <cstdint>

#include "load/workload/variates.h"

namespace gauntlet::load::inline workload {

enum class ArrivalKind { poisson, fixed, closed, trace };
const char* name_of(ArrivalKind kind);

struct ArrivalSpec {
  ArrivalKind kind = ArrivalKind::poisson;
  double rate_per_s = 1;  // of poisson and fixed
  double burstiness =
      1;  // of poisson: the gamma shape of the gaps; 1 is Poisson, below is burstier
  std::int64_t concurrency = 1;  // of closed
};

/// Times of an open loop's arrivals in seconds; the first is at 0. Gaps are gamma distributed with
/// mean 1/rate and shape `burstiness`, as in vLLM's benchmark, so their variance is
/// 1/(rate² * burstiness).
class Arrivals {
 public:
  Arrivals(const ArrivalSpec& spec, std::uint64_t seed);
  double next_s();

 private:
  ArrivalSpec spec_;
  Variates variates_;
  double at_s_ = 0;
  bool begun_ = false;
};

}  // namespace gauntlet::load::inline workload
