// A study's results as one HTML file that needs nothing beside it and nothing from the network.
#pragma once
#include <string>

#include "study/results/study_results.h"

namespace gauntlet::study::inline results {

std::string render_html(const StudyResults& results);

}  // namespace gauntlet::study::inline results
