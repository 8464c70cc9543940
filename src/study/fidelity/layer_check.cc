#include "study/fidelity/layer_check.h"

#include <algorithm>

#include "engine/measure/score.h"
#include "study/cells.h"
#include "study/results/cell_json.h"

namespace gauntlet::study::inline fidelity {
namespace {

Texts prompts_of(const Workbench& bench, const Sizes& sizes) {
  Texts prompts;
  const std::int64_t stride = std::ssize(bench.text()) / sizes.verify_prompts;
  for (std::int64_t i = 0; i < sizes.verify_prompts; ++i) {
    const auto at = bench.text().begin() + i * stride;
    prompts.emplace_back(at, at + sizes.verify_prompt_tokens);
  }
  return prompts;
}

using SecondLook = std::optional<ReplayedLayer>;

/// Where tokens differ at a decided choice, or few of them came before a near tie: the layer before
/// is run once more, to replay its experts. Nothing where that is not needed, there is nothing to
/// compare with, or it could not tell more: the serving loop goes its own way after a near tie.
Expected<SecondLook> second_look(Workbench& bench, const Measured<CheckedLayer>& before,
                                 const Sizes& sizes, const LayerCheck& test, const Texts& own) {
  if (!test.before || !before) return SecondLook();
  const Ladder& ladder = bench.ladder();
  const GreedyRun& expected = before->run;
  const Agreement agreement = compare(expected, own, ladder.least_margin);
  const bool is_served = ladder.stage_of(test.layer) == Stage::serving;
  if (agreement.agrees && (is_served || !agreement.is_thin())) return SecondLook();
  const Room room = study_room(sizes);
  const auto one_before = bench.executor(ladder.up_to(*test.before), room);
  if (!one_before) return one_before.error();
  auto recording = record(**one_before, prompts_of(bench, sizes), expected.tokens);
  if (!recording) return recording.error();
  const OptionIds on = ladder.up_to(test.layer);
  const auto executor = bench.executor(on, room);
  if (!executor) return executor.error();
  const auto replayed = is_served ? replay_served(**executor, ladder.stack(on).serving.scheduler,
                                                  *recording, own, ladder.least_margin)
                                  : replay(**executor, *recording, own, ladder.least_margin);
  if (!replayed) return replayed.error();
  return SecondLook({.replay = *replayed, .where = agreement.where});
}

Expected<GreedyRun> tokens_of(const Workbench& bench, engine::Executor& executor,
                              const Sizes& sizes, int layer) {
  const Ladder& ladder = bench.ladder();
  const Texts prompts = prompts_of(bench, sizes);
  if (ladder.stage_of(layer) == Stage::engine) {
    return greedy(executor, prompts, sizes.verify_tokens);
  }
  const Stack stack = ladder.stack(ladder.up_to(layer));
  auto tokens = served_greedy(executor, stack.serving, prompts, sizes.verify_tokens);
  if (!tokens) return tokens.error();
  return GreedyRun{.tokens = std::move(*tokens), .margins = {}};
}

}  // namespace

Expected<CheckedLayer> check_layer(Workbench& bench, const Journal& journal, const Sizes& sizes,
                                   const LayerCheck& test) {
  const auto executor = bench.executor(bench.ladder().up_to(test.layer), study_room(sizes));
  if (!executor) return executor.error();
  auto run = tokens_of(bench, **executor, sizes, test.layer);
  if (!run) return run.error();
  CheckedLayer checked{.run = std::move(*run), .score = {}, .replayed = {}};
  if (bench.ladder().stage_of(test.layer) == Stage::engine) {
    const auto scored = score_text(bench, **executor, sizes);
    if (!scored) return scored.error();
    checked.score = *scored;
  }
  Measured<CheckedLayer> before;
  if (test.before) {
    auto kept = read_cell<CheckedLayer>(journal, keys::verify(*test.before));
    if (!kept) return kept.error();
    before = std::move(*kept);
  }
  auto looked = second_look(bench, before, sizes, test, checked.run.tokens);
  if (!looked) return looked.error();
  checked.replayed = std::move(*looked);
  return checked;
}

Expected<TextScore> score_text(const Workbench& bench, engine::Executor& executor,
                               const Sizes& sizes) {
  const auto& text = bench.text();
  const auto count = static_cast<std::size_t>(std::min(sizes.score_tokens, std::ssize(text)));
  const auto scored =
      engine::score_tokens(executor, {text.data(), count}, {.window = sizes.score_window});
  if (!scored) return scored.error();
  return TextScore{.perplexity = scored->perplexity, .scored_tokens = scored->tokens};
}

const char* unwatched_parts(engine::Backend backend) {
  return backend == engine::Backend::cuda
             ? "graphs, and routing and dispatch in one kernel"
             : "small steps whose routing every thread repeats instead of waiting";
}

}  // namespace gauntlet::study::inline fidelity
