#include "study/results.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "lab/records/run_record.h"
#include "study/cells.h"
#include "study/estimates.h"
#include "study/results_parts.h"
#include "study/rules.h"

namespace gauntlet::study {
namespace {

using nlohmann::json;

json model_to_json(const StudyFacts& facts) {
  const model::ModelConfig& m = facts.model;
  return {{"name", m.name},
          {"weights", facts.weights},
          {"layers", m.num_layers},
          {"hidden", m.hidden},
          {"intermediate", m.intermediate},
          {"heads", m.num_heads},
          {"kv_heads", m.num_kv_heads},
          {"head_dim", m.head_dim},
          {"experts", m.num_experts},
          {"experts_per_token", m.experts_per_token},
          {"vocab", m.vocab},
          {"positions", m.max_positions},
          {"sliding_window", m.sliding_window}};
}

json doctor_to_json(const std::vector<lab::doctor::Finding>& findings) {
  json list = json::array();
  for (const auto& finding : findings) {
    list.push_back({{"area", finding.area},
                    {"name", finding.name},
                    {"level", lab::doctor::name_of(finding.level)},
                    {"reason", finding.reason},
                    {"fix", finding.fix}});
  }
  return list;
}

json options_to_json(const Ladder& ladder) {
  json list = json::array();
  for (const Option& option : ladder.options) {
    list.push_back({{"id", option.id},
                    {"title", option.title},
                    {"layer", option.layer},
                    {"stage", option.stage == Stage::engine ? "engine" : "serving"},
                    {"perplexity_percent", option.perplexity_percent},
                    {"targets", option.targets}});
  }
  return list;
}

/// The machine, the build and the ceilings as every results file has them.
json header(const StudyFacts& facts, const Journal& journal) {
  lab::RunRecord record{.run_id = facts.id,
                        .started_at = journal.started_at(),
                        .command_line = facts.command_line,
                        .machine = facts.machine,
                        .build = facts.build,
                        .profile = facts.profile};
  if (facts.ceilings) record.ceilings.push_back(*facts.ceilings);
  json document = lab::to_json(record);
  document.erase("results");
  document.erase("arguments");
  document.erase("run_id");
  document["schema_version"] = kStudySchemaVersion;
  document["study_id"] = facts.id;
  return document;
}

}  // namespace

json assemble(const StudyFacts& facts, const Journal& journal) {
  json document = header(facts, journal);
  document["backend"] = facts.ladder.backend == engine::Backend::cuda ? "cuda" : "cpu";
  document["depth"] = facts.depth == Depth::quick ? "quick" : "full";
  document["budget_seconds"] = facts.sizes.budget_seconds;
  document["least_margin"] = facts.ladder.least_margin;
  document["model"] = model_to_json(facts);
  document["doctor"] = doctor_to_json(facts.doctor);
  document["options"] = options_to_json(facts.ladder);
  document["cells"] = {{"planned", facts.num_cells},
                       {"measured", journal.num_cells()},
                       {"left_out", journal.num_gaps(kLeftOut)},
                       {"seconds", journal.seconds()}};
  document["layers"] = layers_to_json(facts, journal);
  document["total"] = total_to_json(journal);
  document["leave_one_out"] = leave_one_out_to_json(facts, journal, document["layers"]);
  document["sweeps"] = sweeps_to_json(facts, journal);
  document["router"] = router_to_json(journal);
  document["time"] = time_to_json(journal);
  document["counters"] = journal.at(keys::kCounters);
  document["findings"] = findings_of(document);
  return document;
}

}  // namespace gauntlet::study
