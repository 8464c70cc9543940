// The cells that say whether a layer still gives the right tokens: greedy tokens beside those of
// the layer before, a second look where they differ or few were judged, and perplexity.
#pragma once
#include <cstdint>
#include <optional>
#include <string>

#include "study/bench/sizes.h"
#include "study/bench/workbench.h"
#include "study/fidelity/verify.h"
#include "study/journal.h"

namespace gauntlet::study::inline fidelity {

/// Of a lossless layer above the baseline, `before` is measured already and compared with.
struct LayerCheck {
  int layer = 0;
  std::optional<int> before;
};
struct TextScore {
  double perplexity = 0;
  std::int64_t scored_tokens = 0;
};
/// The second look at a layer.
struct ReplayedLayer {
  Replay replay;
  std::string where;  // the tokens differ; empty: they do not
};
struct CheckedLayer {
  GreedyRun run;
  std::optional<TextScore> score;  // none of what is served
  std::optional<ReplayedLayer> replayed;
};
Expected<CheckedLayer> check_layer(Workbench& bench, const Journal& journal, const Sizes& sizes,
                                   const LayerCheck& test);

/// By perplexity over the study's text.
Expected<TextScore> score_text(const Workbench& bench, engine::Executor& executor,
                               const Sizes& sizes);

/// Which parts of a stack a replay leaves out, because a watched step runs without them.
const char* unwatched_parts(engine::Backend backend);

}  // namespace gauntlet::study::inline fidelity
