// A study's results out of its journal's cells: estimates, labels and findings.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "core/build_info.h"
#include "core/machine/machine.h"
#include "lab/ceilings/ceilings.h"
#include "lab/doctor/doctor.h"
#include "study/bench/sizes.h"
#include "study/journal.h"
#include "study/ladder.h"
#include "study/results/study_results.h"

namespace gauntlet::study::inline results {

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

/// At any moment of a study. An error where a cell is not as this version keeps it.
Expected<StudyResults> assemble(const StudyFacts& facts, const Journal& journal);

}  // namespace gauntlet::study::inline results
