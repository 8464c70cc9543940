// Two studies side by side: two machines, two commits, two models.
#pragma once
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "lab/records/result.h"

namespace gauntlet::study {

enum class Change { same, better, worse, unclear };
const char* name_of(Change change);

struct StudyDifference {
  std::string figure;  // "layer 3, decode_8"
  std::string unit;    // "tok/s"
  lab::Estimate a, b;
  double ratio = 0;  // b over a
  Change change = Change::unclear;
};

/// Figures that both have. Better or worse where the intervals part; same where they are within 2%.
std::vector<StudyDifference> compare_studies(const nlohmann::json& a, const nlohmann::json& b);

/// What differs in subject: machine, model, backend, commit; a line each.
std::vector<std::string> different_subjects(const nlohmann::json& a, const nlohmann::json& b);

}  // namespace gauntlet::study
