// How results.json looks: docs/analyze.md, as code.
#include <fmt/format.h>

#include "study/results/json_reader.h"
#include "study/results/json_writer.h"
#include "study/results/layer_fields.h"
#include "study/results/run_json.h"
#include "study/results/study_results.h"
#include "study/results/sweep_fields.h"

namespace gauntlet::study::inline results {

using lab::doctor::Finding;
using nlohmann::json;

template <>
inline constexpr std::array kAllOf<Depth>{Depth::quick, Depth::full};
template <>
inline constexpr std::array kAllOf<engine::Backend>{engine::Backend::cpu, engine::Backend::cuda};
template <>
inline std::string json_name(engine::Backend backend) {
  return backend_name(backend);
}
template <>
inline constexpr std::array kAllOf<Finding::Level>{Finding::Level::ok, Finding::Level::warn,
                                                   Finding::Level::fail, Finding::Level::unknown};

template <class Io>
void fields(Io& io, Of<Io, StudiedModel>& model) {
  io("name", model.name);
  io("weights", model.weights);
  io("layers", model.layers);
  io("hidden", model.hidden);
  io("intermediate", model.intermediate);
  io("heads", model.heads);
  io("kv_heads", model.kv_heads);
  io("head_dim", model.head_dim);
  io("experts", model.experts);
  io("experts_per_token", model.experts_per_token);
  io("vocab", model.vocab);
  io("positions", model.positions);
  io("sliding_window", model.sliding_window);
}

template <class Io>
void fields(Io& io, Of<Io, StudiedOption>& option) {
  io("id", option.id);
  io("title", option.title);
  io("layer", option.layer);
  io("stage", option.stage);
  io("perplexity_percent", option.perplexity_percent);
  io("targets", option.targets);
}

template <class Io>
void fields(Io& io, Of<Io, Finding>& finding) {
  io("area", finding.area);
  io("name", finding.name);
  io("level", finding.level);
  io("reason", finding.reason);
  io("fix", finding.fix);
}

template <class Io>
void fields(Io& io, Of<Io, CellCounts>& cells) {
  io("planned", cells.planned);
  io("measured", cells.measured);
  io.later("left_out", cells.left_out);
  io.later("seconds", cells.seconds);
}

template <class Io>
void fields(Io& io, Of<Io, StudyResults>& results) {
  io("study_id", results.run.run_id);
  io("started_at", results.run.started_at);
  io("command_line", results.run.command_line);
  io("profile", results.run.profile);
  io("machine", results.run.machine);
  io("build", results.run.build);
  io("ceilings", results.run.ceilings);
  io("backend", results.backend);
  io("depth", results.depth);
  io("budget_seconds", results.budget_seconds);
  io("least_margin", results.least_margin);
  io("model", results.model);
  io("doctor", results.doctor);
  io("options", results.options);
  io("cells", results.cells);
  io("layers", results.layers);
  io("total", results.total);
  io("leave_one_out", results.leave_one_out);
  io("sweeps", results.sweeps);
  io("router", results.router);
  io("time", results.time);
  io("counters", results.counters);
  io("findings", results.findings);
}

namespace {

/// Version 1 differs in the name of an estimate's value, `median`, and lacks what came later.
bool is_readable(const json& version) {
  return version.is_number_integer() && version >= 1 && version <= kStudySchemaVersion;
}

}  // namespace

json to_json(const StudyResults& results) {
  json document = JsonWriter::write(results);
  document["schema_version"] = kStudySchemaVersion;
  return document;
}

Expected<StudyResults> results_from_json(const json& document) {
  if (document.is_discarded()) return Error{"this is not JSON", ErrorKind::wrong_use};
  if (!document.is_object() || !document.contains("study_id") ||
      !is_readable(document.value("schema_version", json()))) {
    return Error{
        fmt::format("this is not a study's results.json of version 1 to {}", kStudySchemaVersion),
        ErrorKind::wrong_use};
  }
  return JsonReader::read<StudyResults>(document);
}

}  // namespace gauntlet::study::inline results
