// The results of gauntlet load as text.
#pragma once
#include <string>
#include <vector>

#include "load/compare.h"
#include "load/result.h"
#include "load/overhead.h"

namespace gauntlet::cli {

std::string load_text(const load::LoadResult& result);
std::string comparison_text(const std::vector<load::Comparison>& comparisons);
std::string self_test_text(const load::SelfTestOptions& options,
                           const load::SelfTestResult& result);

}  // namespace gauntlet::cli
