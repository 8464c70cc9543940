// Suites: named choices of targets, as the catalogue's file `suites` lists them.
#pragma once
#include <string>
#include <vector>

#include "core/expected.h"

namespace gauntlet::lab::inline targets {

struct Suite {
  std::string name;
  std::vector<std::string> patterns;  // as Catalog::select() takes them
  std::string purpose;                // one sentence
};

/// The suites of catalog/suites as embedded in the binary, in the file's order.
Expected<std::vector<Suite>> load_suites();
Expected<std::vector<Suite>> parse_suites(const std::string& text);

/// "quick, act1, act2 or all": for people who have to choose.
std::string suite_names(const std::vector<Suite>& suites);

}  // namespace gauntlet::lab::inline targets
