// What a study found, one sentence each, by rule.
#pragma once
#include <string>
#include <vector>

#include "study/results/study_results.h"

namespace gauntlet::study::inline results {

std::vector<std::string> findings_of(const StudyResults& results);

}  // namespace gauntlet::study::inline results
