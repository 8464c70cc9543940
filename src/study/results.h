// results.json out of a journal's cells: estimates, labels and findings. Everything that a report
// shows is in here, and nothing else (docs/analyze.md is the schema).
#pragma once
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "core/build_info.h"
#include "core/machine.h"
#include "lab/ceilings/ceilings.h"
#include "lab/doctor/doctor.h"
#include "study/journal.h"
#include "study/ladder.h"
#include "study/sizes.h"

namespace gauntlet::study {

inline constexpr int kStudySchemaVersion = 2;

/// What a study is of, beside its cells.
struct StudyFacts {
  std::string id;
  std::string command_line;
  MachineInfo machine;
  BuildInfo build;
  std::optional<lab::Ceilings> ceilings;
  std::vector<lab::doctor::Finding> doctor;
  model::ModelConfig model;
  std::string weights;  // "files", "random"
  Depth depth = Depth::quick;
  std::string profile;
  Ladder ladder;
  Sizes sizes;
  std::size_t num_cells = 0;  // planned
};

/// Why a cell has no figure where a study's time came to its end before it.
inline constexpr const char* kLeftOut = "left out: the time of a quick study was used up";

nlohmann::json assemble(const StudyFacts& facts, const Journal& journal);

/// Adds the sentences of what was found.
std::vector<std::string> findings_of(const nlohmann::json& results);

}  // namespace gauntlet::study
