// A message for every 64 values.
#include "lab/author/side.h"
#include "tests/doubles/doubles/rank_sum/pair.h"

namespace gauntlet::doubles::rank_sum::ranks {

lab::Side baseline(const Params& p, const lab::Ranks& ranks) {
  constexpr std::int64_t kPart = 64;
  return {[p, group = ranks.group] {
            for (std::int64_t at = 0; at < p.count; at += kPart) sum_part(p, *group, at, kPart);
          },
          {{"messages", static_cast<double>(p.count / kPart)}}};
}

}  // namespace gauntlet::doubles::rank_sum::ranks
