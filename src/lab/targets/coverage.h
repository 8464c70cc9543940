// Coverage: the field's named techniques, and where each stands in this catalogue.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "core/expected.h"
#include "lab/targets/catalog.h"

namespace gauntlet::lab::inline targets {

struct CoverageRow {
  std::string chapter;
  std::string technique;
  std::string state;  // target, planned, feature, fact, out_of_scope
  std::string where;  // target ids, the feature, or the reason; "... planned as" ids in any text
};

/// A command of this program, and an option of it where one is named.
struct NamedFeature {
  std::string command;  // "serve"
  std::string option;   // "--prefix-cache"; may be empty
};
/// What a feature's text begins with, "gauntlet serve --prefix-cache: ..."; nothing where it does
/// not.
std::optional<NamedFeature> named_feature(const CoverageRow& row);

/// The rows of catalog/coverage.tsv as embedded in the binary.
Expected<std::vector<CoverageRow>> load_coverage();
Expected<std::vector<CoverageRow>> parse_coverage(const std::string& text);

/// Rows that say `target` but name one this catalogue lacks or, for Blackwell, one that cannot run
/// there; that call planned what exists by now; and features that name no command.
std::vector<std::string> coverage_problems(const std::vector<CoverageRow>& rows,
                                           const Catalog& catalog);

}  // namespace gauntlet::lab::inline targets
