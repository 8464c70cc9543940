// The scans come after the requests.
#include "lab/author/side.h"
#include "tests/doubles/doubles/queue_tail/pair.h"

namespace gauntlet::doubles::queue_tail::cpu {

lab::Side optimized(const Params& p, const lab::Cpu&) {
  Waits waits;
  lab::Side side([p, waits]() mutable {
    for (std::int64_t i = 0; i < p.count; ++i) {
      waits.note([&] { p.answers[i] = sum_of(p.requests + i * kRequestValues, kRequestValues); });
    }
    for (std::int64_t i = 0; i < p.count / kScanEvery; ++i) {
      p.scans[i] = sum_of(p.table, kTableValues);
      asm volatile("" : : "r"(p.scans) : "memory");  // each scan is made
    }
  });
  side.facts = {{"scans_in_requests", 0}};
  side.distributions = [waits] { return waits.take(); };
  return side;
}

}  // namespace gauntlet::doubles::queue_tail::cpu
