// A recorded workload: one JSON object per line, in order of time.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/expected.h"

namespace gauntlet::load::inline workload {

struct TraceLine {
  double at_s = 0;
  std::int64_t prompt_tokens = 0;  // 0: the prompt is given
  std::string prompt;
  std::int64_t output_tokens = 1;
};

/// {"at_s": 0.5, "prompt_tokens": 128, "output_tokens": 64}, or "prompt" instead of
/// "prompt_tokens". Empty lines are skipped; `name` is the file's, for errors, which say the line.
Expected<std::vector<TraceLine>> parse_trace(std::string_view text, const std::string& name);

}  // namespace gauntlet::load::inline workload
