#include "lab/targets/coverage.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <regex>
#include <sstream>
#include <string_view>

namespace gauntlet::embedded {
std::string_view coverage_tsv();
}

namespace gauntlet::lab::inline targets {
namespace {

constexpr std::array<const char*, 5> kStates = {"target", "planned", "feature", "fact",
                                                "out_of_scope"};

std::vector<std::string> split(const std::string& text, char separator) {
  std::vector<std::string> parts;
  std::stringstream stream(text);
  for (std::string part; std::getline(stream, part, separator);) {
    const auto begin = part.find_first_not_of(' ');
    const auto end = part.find_last_not_of(' ');
    parts.push_back(begin == std::string::npos ? "" : part.substr(begin, end - begin + 1));
  }
  return parts;
}

/// The ids that a text calls planned.
std::vector<std::string> planned_ids(const CoverageRow& row) {
  if (row.state == "planned") return split(row.where, ',');
  std::smatch match;
  static const std::regex kPlanned("planned as ((?:[a-z0-9]+[:/][a-z0-9_]+(?:,| and )?)+)");
  if (!std::regex_search(row.where, match, kPlanned)) return {};
  const std::string listed = std::regex_replace(match[1].str(), std::regex(" and "), ",");
  return split(listed, ',');
}

/// The architecture a target is written for where that is another one than Blackwell's.
std::string other_architecture(const Target& target) {
  for (const std::string& need : target.needs(BackendKind::cuda)) {
    if (need.starts_with("sm_") && need.ends_with("a") && need != "sm_100a") return need;
  }
  return "";
}

}  // namespace

std::optional<NamedFeature> named_feature(const CoverageRow& row) {
  std::smatch match;
  static const std::regex kCommand("gauntlet ([a-z]+)(?: (--[a-z-]+))?.*");
  if (!std::regex_match(row.where, match, kCommand)) return std::nullopt;
  return NamedFeature{.command = match[1], .option = match[2]};
}

Expected<std::vector<CoverageRow>> parse_coverage(const std::string& text) {
  std::vector<CoverageRow> rows;
  std::stringstream stream(text);
  std::string line;
  std::getline(stream, line);  // header
  for (int number = 2; std::getline(stream, line); ++number) {
    if (line.empty()) continue;
    const auto fields = split(line, '\t');
    if (fields.size() != 4 || std::ranges::find(kStates, fields[2]) == kStates.end()) {
      return Error{
          fmt::format("coverage.tsv line {}: expected chapter, technique, state ({}) and "
                      "where, separated by tabs",
                      number, fmt::join(kStates, ", "))};
    }
    rows.push_back({fields[0], fields[1], fields[2], fields[3]});
  }
  return rows;
}

Expected<std::vector<CoverageRow>> load_coverage() {
  return parse_coverage(std::string(embedded::coverage_tsv()));
}

std::vector<std::string> coverage_problems(const std::vector<CoverageRow>& rows,
                                           const Catalog& catalog) {
  std::vector<std::string> problems;
  for (const CoverageRow& row : rows) {
    for (const std::string& id : planned_ids(row)) {
      if (catalog.find(id) == nullptr) continue;
      problems.push_back(fmt::format("'{}' calls {} planned, but it exists", row.technique, id));
    }
    if (row.state == "feature" && !named_feature(row)) {
      problems.push_back(fmt::format("'{}' is a feature, but names no command", row.technique));
    }
    if (row.state != "target") continue;
    for (const std::string& id : split(row.where, ',')) {
      const Target* target = catalog.find(id);
      if (target == nullptr) {
        problems.push_back(
            fmt::format("'{}' names {}, which is not in the catalogue", row.technique, id));
        continue;
      }
      const std::string other = row.chapter == "blackwell" ? other_architecture(*target) : "";
      if (!other.empty()) {
        problems.push_back(
            fmt::format("'{}' names {}, which is written for {} and skipped on "
                        "Blackwell",
                        row.technique, id, other));
      }
    }
  }
  return problems;
}

}  // namespace gauntlet::lab::inline targets
