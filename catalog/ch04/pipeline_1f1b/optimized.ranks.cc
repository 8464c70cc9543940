// 1F1B: as many micro-batches forwards as there are stages from here on, then one backwards for
// each one forwards.
#include "catalog/ch04/pipeline_1f1b/pair.h"

namespace gauntlet::ch04::pipeline_1f1b::ranks {

lab::Side optimized(const Params& p, const lab::Ranks& ranks) {
  return staged(p, ranks, [](const Params& params, Stage& stage) {
    const std::int64_t ahead =
        std::min<std::int64_t>(params.num_ranks - params.rank, params.batches);
    for (std::int64_t batch = 0; batch < ahead; ++batch) stage.forward();
    for (std::int64_t batch = 0; batch < params.batches; ++batch) {
      stage.backward();
      if (batch + ahead < params.batches) stage.forward();
    }
  });
}

}  // namespace gauntlet::ch04::pipeline_1f1b::ranks
