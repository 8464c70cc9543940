// A study's results: what results.json holds and every report is made of (docs/analyze.md is the
// schema).
#pragma once
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "core/expected.h"
#include "lab/doctor/doctor.h"
#include "lab/records/run_record.h"
#include "study/bench/sizes.h"
#include "study/fidelity/router.h"
#include "study/fidelity/rules.h"
#include "study/results/layer_result.h"
#include "study/results/measured.h"
#include "study/results/sweeps.h"
#include "study/time_split.h"

namespace gauntlet::study::inline results {

inline constexpr int kStudySchemaVersion = 2;

struct StudiedModel {
  std::string name;
  std::string weights;  // "files", "random"
  std::int64_t layers = 0;
  std::int64_t hidden = 0;
  std::int64_t intermediate = 0;
  std::int64_t heads = 0;
  std::int64_t kv_heads = 0;
  std::int64_t head_dim = 0;
  std::int64_t experts = 0;
  std::int64_t experts_per_token = 0;
  std::int64_t vocab = 0;
  std::int64_t positions = 0;
  std::int64_t sliding_window = 0;
};

/// An option of the ladder, as far as a report shows it.
struct StudiedOption {
  std::string id;
  std::string title;
  int layer = 0;
  Stage stage = Stage::engine;
  double perplexity_percent = 0;
  std::vector<std::string> targets;
};

struct CellCounts {
  std::int64_t planned = 0;
  std::int64_t measured = 0;  // gaps included
  std::int64_t left_out = 0;  // for lack of time
  double seconds = 0;
};

struct LimitedPart {
  StepPart part;
  std::optional<double> percent_of_limit;
};
struct TimeResult {
  StepTimes<LimitedPart> step;
  Diagnosis bottleneck;
};

struct StudyResults {
  lab::RunRecord run;  // id, start, command line, machine, build and ceilings; no results
  engine::Backend backend = engine::Backend::cpu;
  Depth depth = Depth::quick;
  double budget_seconds = 0;  // to share out among cells
  double least_margin = 0;    // of a choice that is no near tie
  StudiedModel model;
  std::vector<lab::doctor::Finding> doctor;
  std::vector<StudiedOption> options;
  CellCounts cells;
  std::vector<LayerResult> layers;
  Measured<Total> total;
  std::vector<OptionWorth> leave_one_out;
  Sweeps sweeps;
  Measured<RouterLoads> router;
  Measured<std::vector<TimeResult>> time;
  Measured<CounterValues> counters;
  std::vector<std::string> findings;
};

nlohmann::json to_json(const StudyResults& results);
/// Also of files of version 1. An error says which field is not as the schema has it.
Expected<StudyResults> results_from_json(const nlohmann::json& document);

}  // namespace gauntlet::study::inline results
