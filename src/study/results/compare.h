// Two studies side by side: two machines, two commits, two models.
#pragma once
#include <string>
#include <vector>

#include "stats/change.h"
#include "study/results/study_results.h"

namespace gauntlet::study::inline results {

struct StudyDifference {
  std::string figure;  // "layer 3, decode_8"
  std::string unit;    // "tok/s"
  stats::Interval a, b;
  stats::Interval ratio;  // b over a
  stats::Change change = stats::Change::unclear;
};

/// Figures that both have, judged by stats::change(); for all of them more is better.
std::vector<StudyDifference> compare_studies(const StudyResults& a, const StudyResults& b);

/// What differs in subject: machine, model, backend, commit; a line each.
std::vector<std::string> different_subjects(const StudyResults& a, const StudyResults& b);

}  // namespace gauntlet::study::inline results
