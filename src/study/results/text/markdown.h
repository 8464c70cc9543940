// A study's results as Markdown: good on a code host, readable as plain text in a terminal.
#pragma once
#include <string>

#include "study/results/study_results.h"

namespace gauntlet::study::inline results {

std::string render_markdown(const StudyResults& results);

}  // namespace gauntlet::study::inline results
