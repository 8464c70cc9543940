// analyze --ranks: what more ranks buy on this machine.
#pragma once
#include <string>
#include <vector>

#include "cli/engine_options.h"

namespace gauntlet::cli {

struct ScaleArguments {
  std::vector<int> ranks;
  int rounds = 8;
};

/// Measures, writes ranks.json, ranks.md and ranks.html into the folder, and prints.
int analyze_ranks(const EngineArguments& arguments, const ScaleArguments& scale,
                  const std::string& folder, Format format);

}  // namespace gauntlet::cli
