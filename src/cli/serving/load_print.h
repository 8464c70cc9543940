// The results of gauntlet load as text.
#pragma once
#include <string>
#include <vector>

#include "load/overhead.h"
#include "load/results/compare.h"
#include "load/results/result.h"

namespace gauntlet::cli {

std::string load_text(const load::LoadResult& result);
std::string comparison_text(const std::vector<load::Comparison>& comparisons);
std::string overhead_text(const load::OverheadOptions& options, const load::Overhead& result);

}  // namespace gauntlet::cli
