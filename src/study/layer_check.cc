#include "study/layer_check.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "study/cells.h"
#include "study/results_parts.h"

namespace gauntlet::study {
namespace {

using nlohmann::json;

Texts prompts_of(const Workbench& bench, const Sizes& sizes) {
  Texts prompts;
  const std::int64_t stride = std::ssize(bench.text()) / sizes.verify_prompts;
  for (std::int64_t i = 0; i < sizes.verify_prompts; ++i) {
    const auto at = bench.text().begin() + i * stride;
    prompts.emplace_back(at, at + sizes.verify_prompt_tokens);
  }
  return prompts;
}

json to_json(const Replay& replay, const std::string& where) {
  return {{"compared", replay.compared}, {"of", replay.of},       {"experts", replay.experts},
          {"replaced", replay.replaced}, {"wrong", replay.wrong}, {"where", where}};
}

/// Where tokens differ at a decided choice, or few of them came before a near tie: the layer before
/// is run once more, to replay its experts. Null where that is not needed, there is nothing to
/// compare with, or it could not tell more: the serving loop goes its own way after a near tie.
Expected<json> second_look(Workbench& bench, const json& before, const Sizes& sizes,
                           const LayerCheck& test, const Texts& own) {
  if (!test.before || !is_measured(before)) return json();
  const Ladder& ladder = bench.ladder();
  const GreedyRun expected = run_from_json(before);
  const Agreement agreement = compare(expected, own, ladder.least_margin);
  const bool is_served = ladder.stage_of(test.layer) == Stage::serving;
  if (agreement.agrees && (is_served || !agreement.is_thin())) return json();
  const Room room = study_room(sizes);
  const auto one_before = bench.executor(ladder.up_to(*test.before), room);
  if (!one_before) return one_before.error();
  auto recording = record(**one_before, prompts_of(bench, sizes), expected.tokens);
  if (!recording) return recording.error();
  const OptionIds on = ladder.up_to(test.layer);
  const auto executor = bench.executor(on, room);
  if (!executor) return executor.error();
  const auto replayed = is_served ? replay_served(**executor, ladder.stack(on).scheduler,
                                                  *recording, own, ladder.least_margin)
                                  : replay(**executor, *recording, own, ladder.least_margin);
  if (!replayed) return replayed.error();
  return to_json(*replayed, agreement.where);
}

Expected<GreedyRun> tokens_of(const Workbench& bench, engine::Executor& executor,
                              const Sizes& sizes, int layer) {
  const Ladder& ladder = bench.ladder();
  const Texts prompts = prompts_of(bench, sizes);
  if (ladder.stage_of(layer) == Stage::engine) {
    return greedy(executor, prompts, sizes.verify_tokens);
  }
  const Stack stack = ladder.stack(ladder.up_to(layer));
  auto tokens = served_greedy(executor, stack.scheduler, prompts, sizes.verify_tokens);
  if (!tokens) return tokens.error();
  return GreedyRun{.tokens = std::move(*tokens), .margins = {}};
}

}  // namespace

Expected<json> check_layer(Workbench& bench, const Journal& journal, const Sizes& sizes,
                           const LayerCheck& test) {
  const auto executor = bench.executor(bench.ladder().up_to(test.layer), study_room(sizes));
  if (!executor) return executor.error();
  const auto run = tokens_of(bench, **executor, sizes, test.layer);
  if (!run) return run.error();
  json value = {{"tokens", run->tokens}, {"margins", run->margins}};
  if (bench.ladder().stage_of(test.layer) == Stage::engine) {
    const auto scored = score_text(bench, **executor, sizes);
    if (!scored) return scored.error();
    value["perplexity"] = scored->perplexity;
    value["scored_tokens"] = scored->tokens;
  }
  const json before = test.before ? journal.at(keys::verify(*test.before)) : json();
  const auto looked = second_look(bench, before, sizes, test, run->tokens);
  if (!looked) return looked.error();
  if (!looked->is_null()) value["replayed"] = *looked;
  return value;
}

Expected<engine::Score> score_text(const Workbench& bench, engine::Executor& executor,
                                   const Sizes& sizes) {
  const auto& text = bench.text();
  const auto count = static_cast<std::size_t>(std::min(sizes.score_tokens, std::ssize(text)));
  return engine::score_tokens(executor, {text.data(), count}, {.window = sizes.score_window});
}

GreedyRun run_from_json(const json& cell) {
  return {.tokens = cell.at("tokens").get<Texts>(),
          .margins = cell.at("margins").get<std::vector<std::vector<double>>>()};
}

const char* unwatched_parts(engine::Backend backend) {
  return backend == engine::Backend::cuda
             ? "graphs, and routing and dispatch in one kernel"
             : "small steps whose routing every thread repeats instead of waiting";
}

}  // namespace gauntlet::study
