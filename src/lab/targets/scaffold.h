// Scaffold: the files of a new pair that builds, runs and verifies before its author has changed a
// line.
#pragma once
#include <map>
#include <string>

#include "core/expected.h"

namespace gauntlet::lab::inline targets {

struct ScaffoldRequest {
  std::string chapter;    // "ch07"
  std::string name;       // "my_pair"
  std::string technique;  // from the chapter's list
  enum class Sides { cpu, cuda, both } sides = Sides::both;
};

/// Splits "ch07/my_pair" and checks it.
Expected<ScaffoldRequest> parse_pair_name(const std::string& text);

/// File name to content, for the pair's folder.
std::map<std::string, std::string> scaffold_files(const ScaffoldRequest& request);

}  // namespace gauntlet::lab::inline targets
