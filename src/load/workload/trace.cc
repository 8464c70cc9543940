#include "load/workload/trace.h"

#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>

#include "core/text/text.h"

namespace gauntlet::load::inline workload {
namespace {

constexpr std::int64_t kMostTokens = 1 << 22;
constexpr double kMostSeconds = 7 * 86400;

std::optional<std::int64_t> count_of(const nlohmann::json& line, const char* name) {
  const auto found = line.find(name);
  if (found == line.end() || !found->is_number_integer()) return std::nullopt;
  const auto value = found->get<std::int64_t>();
  return value >= 1 && value <= kMostTokens ? std::optional(value) : std::nullopt;
}

/// A sentence about what is wrong, or empty.
std::string read_line(const nlohmann::json& line, double earliest_s, TraceLine& out) {
  if (!line.is_object()) return "is no JSON object";
  const auto at = line.find("at_s");
  if (at == line.end() || !at->is_number()) return "has no number 'at_s'";
  out.at_s = at->get<double>();
  if (!(out.at_s >= earliest_s && out.at_s <= kMostSeconds)) {
    return "has an 'at_s' below 0, before the line above, or beyond a week";
  }
  const auto output = count_of(line, "output_tokens");
  if (!output) return fmt::format("has no 'output_tokens' from 1 to {}", kMostTokens);
  out.output_tokens = *output;
  const auto prompt = line.find("prompt");
  if (prompt != line.end() && prompt->is_string() && !line.contains("prompt_tokens")) {
    out.prompt = prompt->get<std::string>();
    return out.prompt.empty() ? "has an empty 'prompt'" : "";
  }
  const auto tokens = count_of(line, "prompt_tokens");
  if (!tokens || prompt != line.end()) {
    return fmt::format("needs either 'prompt', a string, or 'prompt_tokens' from 1 to {}",
                       kMostTokens);
  }
  out.prompt_tokens = *tokens;
  return "";
}

}  // namespace

Expected<std::vector<TraceLine>> parse_trace(std::string_view text, const std::string& name) {
  std::vector<TraceLine> trace;
  std::int64_t number = 0;
  for (const std::string& line : split_lines(text)) {
    ++number;
    if (trim(line).empty()) continue;
    TraceLine parsed;
    const double earliest_s = trace.empty() ? 0 : trace.back().at_s;
    const std::string fault =
        read_line(nlohmann::json::parse(line, nullptr, false), earliest_s, parsed);
    if (!fault.empty()) {
      return Error{fmt::format("{} line {} {}", name, number, fault), ErrorKind::wrong_use};
    }
    trace.push_back(std::move(parsed));
  }
  if (trace.empty()) return Error{name + " holds no request", ErrorKind::wrong_use};
  return trace;
}

}  // namespace gauntlet::load::inline workload
