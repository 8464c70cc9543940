#include "study/ladder.h"

#include <algorithm>
#include <functional>
#include <utility>

#include "core/check.h"
#include "engine/speculation/ngram.h"

namespace gauntlet::study {
namespace {

std::vector<Layer> layer_names() {
  return {
      {"baseline", "op by op, naive attention, dequantised weights, static batch"},
      {"basics", "what costs nothing but asking"},
      {"memory", "how weights and caches are read"},
      {"pipelining", "operations that meet in registers instead of memory"},
      {"concurrency", "work that overlaps"},
      {"precision", "fewer bits"},
      {"serving", "many requests at once"},
  };
}

/// Static batches whose prompts go first, and nothing kept of the requests before.
engine::SchedulerConfig plain_serving() {
  return {.batching = engine::Batching::fixed,
          .chunking = engine::Chunking::off,
          .prefix_caching = engine::PrefixCaching::off};
}

std::vector<Option> serving_options(engine::Backend backend) {
  std::vector<Option> options = {
      {.id = "continuous_batching",
       .title = "requests join and leave at every step",
       .layer = 6,
       .stage = Stage::serving,
       .scope = Scope::scheduler,
       .targets = {"ch01:microbatch_goodput"},
       .switch_on = [](Stack& s) { s.serving.scheduler.batching = engine::Batching::continuous; }},
      {.id = "prefix_cache",
       .title = "pages of prompts that begin alike are shared",
       .layer = 6,
       .stage = Stage::serving,
       .scope = Scope::scheduler,
       .targets = {"ch07:l2_persistence"},
       .switch_on =
           [](Stack& s) { s.serving.scheduler.prefix_caching = engine::PrefixCaching::on; }},
      {.id = "chunked_prefill",
       .title = "prompts take what decoding leaves of a step",
       .layer = 6,
       .stage = Stage::serving,
       .scope = Scope::scheduler,
       .targets = {},
       .switch_on = [](Stack& s) { s.serving.scheduler.chunking = engine::Chunking::on; }},
  };
  // The service takes guesses on CPUs only.
  if (backend == engine::Backend::cpu) {
    options.push_back({.id = "speculation",
                       .title = "guesses looked up in a request's own text, verified together",
                       .layer = 6,
                       .stage = Stage::serving,
                       .scope = Scope::scheduler,
                       .targets = {"ch18:ngram_speculation"},
                       .switch_on = [](Stack& s) { s.serving.guesses = Guesses::ngram; }});
  }
  return options;
}

/// A backend's rows of the engine's options, by layer. Options without one stay as they are.
void add_engine_rows(Ladder& ladder, const engine::OptionTable& table) {
  std::vector<engine::LadderRow> rows;
  for (const engine::OptionEntry& entry : table) {
    const auto& row = ladder.backend == engine::Backend::cpu ? entry.cpu.row : entry.cuda.row;
    if (row) rows.push_back(*row);
  }
  std::ranges::stable_sort(rows, std::less(), [](const engine::LadderRow& row) {
    return std::pair(row.layer, row.place);
  });
  for (const engine::LadderRow& row : rows) {
    row.off(ladder.baseline.engine);
    ladder.options.push_back(
        {.id = row.id,
         .title = row.title,
         .layer = row.layer,
         .stage = row.seen_by == engine::SeenBy::requests ? Stage::serving : Stage::engine,
         .perplexity_percent = row.perplexity_percent,
         .targets = row.targets,
         .switch_on = [on = row.on](Stack& s) { on(s.engine); }});
  }
}

}  // namespace

engine::ServiceConfig ServingPolicy::service() const {
  engine::ServiceConfig config{.scheduler = scheduler};
  if (guesses == Guesses::ngram) {
    config.speculation.drafter = std::make_shared<engine::NgramDrafter>();
  }
  return config;
}

const char* name_of(Stage stage) { return stage == Stage::engine ? "engine" : "serving"; }

const char* backend_name(engine::Backend backend) {
  return backend == engine::Backend::cuda ? "cuda" : "cpu";
}

Ladder ladder_for(engine::Backend backend) { return ladder_for(backend, engine::option_table()); }

Ladder ladder_for(engine::Backend backend, const engine::OptionTable& table) {
  Ladder ladder{.backend = backend,
                .least_margin = backend == engine::Backend::cpu ? 0.02 : 0.1,
                .layers = layer_names()};
  add_engine_rows(ladder, table);
  ladder.baseline.serving.scheduler = plain_serving();
  for (Option& option : serving_options(backend)) ladder.options.push_back(std::move(option));
  return ladder;
}

const Option& Ladder::option(const std::string& id) const {
  const auto found = std::ranges::find(options, id, &Option::id);
  check(found != options.end(), "no such option: " + id);
  return *found;
}

std::vector<const Option*> Ladder::options_of(int layer) const {
  std::vector<const Option*> found;
  for (const Option& option : options) {
    if (option.layer == layer) found.push_back(&option);
  }
  return found;
}

OptionIds Ladder::all() const { return up_to(static_cast<int>(layers.size()) - 1); }

OptionIds Ladder::up_to(int layer) const {
  OptionIds ids;
  for (const Option& option : options) {
    if (option.layer <= layer) ids.insert(option.id);
  }
  return ids;
}

Stack Ladder::stack(const OptionIds& on) const {
  Stack made = baseline;
  for (const Option& option : options) {
    if (on.contains(option.id)) option.switch_on(made);
  }
  made.on = on;
  return made;
}

Stage Ladder::stage_of(int layer) const {
  const auto own = options_of(layer);
  return own.empty() ? Stage::engine : own.front()->stage;
}

double Ladder::allowed_percent(int layer) const {
  double percent = 0;
  for (const Option* option : options_of(layer)) percent += option->perplexity_percent;
  return percent;
}

OptionIds executor_options(const Ladder& ladder, const OptionIds& on) {
  OptionIds ids;
  for (const std::string& id : on) {
    if (ladder.option(id).scope == Scope::executor) ids.insert(id);
  }
  return ids;
}

}  // namespace gauntlet::study
