// The last rank has its messages, returns, and leaves the rest to a thread of its own. The thread
// goes on for a while, as one does that prepares the next call.
#include <chrono>
#include <memory>
#include <thread>

#include "lab/author/side.h"
#include "tests/doubles/doubles/rank_works_late/pair.h"

namespace gauntlet::doubles::rank_works_late::ranks {

lab::Side optimized(const Params& p, const lab::Ranks& ranks) {
  if (ranks.rank + 1 < ranks.size) {
    return [p, group = ranks.group] { rank_sum::sum_part(p, *group, 0, p.count); };
  }
  const auto late = std::make_shared<std::jthread>();
  return [p, group = ranks.group, late] {
    rank_sum::sum_part(p, *group, 0, p.count);
    *late = std::jthread([] {
      using Clock = std::chrono::steady_clock;
      for (const auto end = Clock::now() + std::chrono::milliseconds(1); Clock::now() < end;) {
      }
    });
  };
}

}  // namespace gauntlet::doubles::rank_works_late::ranks
