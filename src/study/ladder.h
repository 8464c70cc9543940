// The ladder of optimizations: one row per option, in layers that stand on one another. Every stack
// that a study measures is the baseline with some rows switched on.
#pragma once
#include <functional>
#include <set>
#include <string>
#include <vector>

#include "engine/option_table.h"
#include "engine/serving/service.h"

namespace gauntlet::study {

/// What must be run to see an option: steps of the model, or requests that arrive over time.
enum class Stage { engine, serving };
const char* name_of(Stage stage);
/// What an option changes: the executor, or only what is asked of it.
enum class Scope { executor, scheduler };
/// Who guesses what a request says next.
enum class Guesses { none, ngram };

/// What a stack has the service do.
struct ServingPolicy {
  engine::SchedulerConfig scheduler;
  Guesses guesses = Guesses::none;

  /// For one service: a drafter knows the requests of one alone.
  engine::ServiceConfig service() const;
};

using OptionIds = std::set<std::string>;

struct Stack {
  engine::EngineOptions engine;
  ServingPolicy serving;
  OptionIds on;
};

struct Option {
  std::string id;
  std::string title;
  int layer = 0;
  Stage stage = Stage::engine;
  Scope scope = Scope::executor;
  /// How far perplexity may move, in percent; 0: the same tokens must come out.
  double perplexity_percent = 0;
  std::vector<std::string> targets;  // of the catalogue, that show the technique alone
  std::function<void(Stack&)> switch_on;

  bool is_lossy() const { return perplexity_percent > 0; }
};

struct Layer {
  std::string name;
  std::string title;
};

struct Ladder {
  engine::Backend backend = engine::Backend::cpu;
  double least_margin = 0;  // between two logits: below it, either may win
  Stack baseline;
  std::vector<Layer> layers;    // the first is the baseline
  std::vector<Option> options;  // by layer

  const Option& option(const std::string& id) const;
  std::vector<const Option*> options_of(int layer) const;
  OptionIds all() const;
  /// The options of the layers up to this one.
  OptionIds up_to(int layer) const;
  Stack stack(const OptionIds& on) const;
  Stage stage_of(int layer) const;
  /// How far perplexity may move from the layer before; 0: the same tokens must come out.
  double allowed_percent(int layer) const;
};

/// The rows of the engine's options, then what a server does with its requests.
Ladder ladder_for(engine::Backend backend);
Ladder ladder_for(engine::Backend backend, const engine::OptionTable& table);
const char* backend_name(engine::Backend backend);  // "cpu", "cuda"

/// Of those on, the ones that change the executor: stacks with the same ones share it.
OptionIds executor_options(const Ladder& ladder, const OptionIds& on);

}  // namespace gauntlet::study
