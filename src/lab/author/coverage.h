// Coverage: the field's named techniques, and where each stands in this catalogue.
#pragma once
#include <string>
#include <vector>

#include "core/expected.h"
#include "lab/author/catalog.h"

namespace gauntlet::lab::inline author {

struct CoverageRow {
  std::string chapter;
  std::string technique;
  std::string state;  // target, planned, feature, fact, out_of_scope
  std::string where;  // target ids, the feature, or the reason
};

/// The rows of catalog/coverage.tsv as embedded in the binary.
Expected<std::vector<CoverageRow>> load_coverage();
Expected<std::vector<CoverageRow>> parse_coverage(const std::string& text);

/// Rows that say `target` but name one this catalogue lacks, or `planned` for one that exists by
/// now.
std::vector<std::string> coverage_problems(const std::vector<CoverageRow>& rows,
                                           const Catalog& catalog);

}  // namespace gauntlet::lab::inline author
