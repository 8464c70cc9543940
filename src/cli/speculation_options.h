// --speculate and what goes with it: who guesses, as asked for on a command line.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "cli/engine_options.h"
#include "engine/speculation/speculation.h"

namespace gauntlet::cli {

enum class Speculate { ngram, draft, eagle3, experts };

struct SpeculationArguments {
  std::vector<Speculate> speculate;  // none: off
  std::string draft_model;
  std::int64_t draft_tokens = 7;
  std::optional<int> draft_experts;  // none: one
  engine::DraftLengths lengths = engine::DraftLengths::measured;
  std::string draft_tree;  // "W,D"; empty: chains

  bool has(Speculate drafter) const;
};

/// --speculate, --draft-model, --draft-tokens, --draft-experts, --draft-lengths,
/// --draft-tree.
void add_speculation_options(CLI::App& command, SpeculationArguments& arguments);
/// What can be refused before a model is loaded.
Expected<void> check_speculation(const SpeculationArguments& arguments);
/// The target's layers that its drafter goes on from, which the executor is to export.
Expected<std::vector<int>> export_layers_for(const SpeculationArguments& arguments,
                                             const OpenModel& model);
/// What is guessed for.
struct SpeculationTarget {
  const OpenModel& model;
  const model::Tokenizer* tokenizer = nullptr;  // none: nothing is known of its tokens' texts
  engine::Executor& executor;                   // made for the capacity; outlives what guesses
};
Expected<engine::Speculation> make_speculation(const SpeculationArguments& arguments,
                                               const EngineArguments& engine,
                                               const Capacity& capacity,
                                               const SpeculationTarget& target);

}  // namespace gauntlet::cli
