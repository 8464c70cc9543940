// GPipe: all micro-batches forwards, and then all backwards.
#include "catalog/ch04/pipeline_1f1b/pair.h"

namespace gauntlet::ch04::pipeline_1f1b::ranks {

lab::Side baseline(const Params& p, const lab::Ranks& ranks) {
  return staged(p, ranks, [](const Params& params, Stage& stage) {
    for (std::int64_t batch = 0; batch < params.batches; ++batch) stage.forward();
    for (std::int64_t batch = 0; batch < params.batches; ++batch) stage.backward();
  });
}

}  // namespace gauntlet::ch04::pipeline_1f1b::ranks
