#include "lab/author/coverage.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <sstream>
#include <string_view>

namespace gauntlet::embedded {
std::string_view coverage_tsv();
}

namespace gauntlet::lab::inline author {
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

}  // namespace

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
    if (row.state != "target" && row.state != "planned") continue;
    for (const std::string& id : split(row.where, ',')) {
      const bool exists = catalog.find(id) != nullptr;
      if (row.state == "target" && !exists) {
        problems.push_back(
            fmt::format("'{}' names {}, which is not in the catalogue", row.technique, id));
      }
      if (row.state == "planned" && exists) {
        problems.push_back(fmt::format("'{}' calls {} planned, but it exists", row.technique, id));
      }
    }
  }
  return problems;
}

}  // namespace gauntlet::lab::inline author
