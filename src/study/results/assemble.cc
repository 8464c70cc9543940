#include "study/results/assemble.h"

#include <nlohmann/json.hpp>

#include "study/cells.h"
#include "study/results/assemble_parts.h"
#include "study/results/findings.h"

namespace gauntlet::study::inline results {
namespace {

StudiedModel model_of(const StudyFacts& facts) {
  const model::ModelConfig& m = facts.model;
  return {.name = m.name,
          .weights = facts.weights,
          .layers = m.num_layers,
          .hidden = m.hidden,
          .intermediate = m.intermediate,
          .heads = m.num_heads,
          .kv_heads = m.num_kv_heads,
          .head_dim = m.head_dim,
          .experts = m.num_experts,
          .experts_per_token = m.experts_per_token,
          .vocab = m.vocab,
          .positions = m.max_positions,
          .sliding_window = m.sliding_window};
}

std::vector<StudiedOption> options_of(const Ladder& ladder) {
  std::vector<StudiedOption> options;
  for (const Option& option : ladder.options) {
    options.push_back({.id = option.id,
                       .title = option.title,
                       .layer = option.layer,
                       .stage = option.stage,
                       .perplexity_percent = option.perplexity_percent,
                       .targets = option.targets});
  }
  return options;
}

lab::RunRecord run_of(const StudyFacts& facts, const Journal& journal) {
  lab::RunRecord run{.run_id = facts.id,
                     .started_at = journal.started_at(),
                     .command_line = facts.command_line,
                     .machine = facts.machine,
                     .build = facts.build,
                     .profile = facts.profile};
  if (facts.ceilings) run.ceilings.push_back(*facts.ceilings);
  return run;
}

}  // namespace

Expected<StudyResults> assemble(const StudyFacts& facts, const Journal& journal) {
  CellReader cells(journal);
  StudyResults results{.run = run_of(facts, journal),
                       .backend = facts.ladder.backend,
                       .depth = facts.depth,
                       .budget_seconds = facts.sizes.budget_seconds,
                       .least_margin = facts.ladder.least_margin,
                       .model = model_of(facts),
                       .doctor = facts.doctor,
                       .options = options_of(facts.ladder)};
  results.cells = {.planned = static_cast<std::int64_t>(facts.num_cells),
                   .measured = static_cast<std::int64_t>(journal.num_cells()),
                   .left_out = static_cast<std::int64_t>(journal.count(gap_to_json(kLeftOut))),
                   .seconds = journal.seconds()};
  results.layers = layers_of(facts, cells);
  results.total = total_of(cells);
  results.leave_one_out = leave_one_out(facts, cells, results.layers);
  results.sweeps = sweeps_of(facts, cells);
  results.router = cells.read<RouterLoads>(keys::kRouter);
  results.time = time_of(cells);
  results.counters = cells.read<CounterValues>(keys::kCounters);
  if (cells.fault()) return *cells.fault();
  results.findings = findings_of(results);
  return results;
}

}  // namespace gauntlet::study::inline results
