// The figures of a rank scaling as JSON, as Markdown, and as a page with a plot.
#pragma once
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "study/ranks/rank_scaling.h"

namespace gauntlet::study::inline ranks {

nlohmann::ordered_json to_json(const RankScaling& scaling);
std::string markdown_of(const RankScaling& scaling);
/// Needs nothing beside it.
std::string page_of(const RankScaling& scaling);

/// Rows of a table, headers first.
std::vector<std::vector<std::string>> rows_of(const RankScaling& scaling);
/// What has to be known about these figures: ranks that share CPUs, what waiting holds.
std::string remarks_on(const RankScaling& scaling);

}  // namespace gauntlet::study::inline ranks
