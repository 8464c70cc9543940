// The cells that say whether a layer still gives the right tokens: greedy tokens beside those of
// the layer before, a second look where they differ or few were judged, and perplexity.
#pragma once
#include <nlohmann/json_fwd.hpp>
#include <optional>

#include "engine/score.h"
#include "study/journal.h"
#include "study/sizes.h"
#include "study/verify.h"
#include "study/workbench.h"

namespace gauntlet::study {

/// Of a lossless layer above the baseline, `before` is measured already and compared with.
struct LayerCheck {
  int layer = 0;
  std::optional<int> before;
};
Expected<nlohmann::json> check_layer(Workbench& bench, const Journal& journal, const Sizes& sizes,
                                     const LayerCheck& test);

/// By perplexity over the study's text.
Expected<engine::Score> score_text(const Workbench& bench, engine::Executor& executor,
                                   const Sizes& sizes);

/// A layer's tokens and margins out of its cell.
GreedyRun run_from_json(const nlohmann::json& cell);

/// Which parts of a stack a replay leaves out, because a watched step runs without them.
const char* unwatched_parts(engine::Backend backend);

}  // namespace gauntlet::study
