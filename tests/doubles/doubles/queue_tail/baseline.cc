// Every 20th request scans the table while it is at it.
#include "lab/author/side.h"
#include "tests/doubles/doubles/queue_tail/pair.h"

namespace gauntlet::doubles::queue_tail::cpu {

lab::Side baseline(const Params& p, const lab::Cpu&) {
  Waits waits;
  lab::Side side([p, waits]() mutable {
    for (std::int64_t i = 0; i < p.count; ++i) {
      waits.note([&] {
        p.answers[i] = sum_of(p.requests + i * kRequestValues, kRequestValues);
        if (i % kScanEvery == 0) p.scans[i / kScanEvery] = sum_of(p.table, kTableValues);
      });
    }
  });
  side.facts = {{"scans_in_requests", static_cast<double>(p.count / kScanEvery)}};
  side.distributions = [waits] { return waits.take(); };
  return side;
}

}  // namespace gauntlet::doubles::queue_tail::cpu
