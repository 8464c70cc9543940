// Do the tables of the pages say what the committed records say? A table under the line
// <!-- figures: tests/gpu/record.json --> is held against that record, row by row.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <regex>
#include <sstream>

#include "tests/program.h"

namespace gauntlet::tests {
namespace {

using nlohmann::json;
using testing::HasSubstr;
using testing::IsEmpty;

/// A figure of a record, by what the first cell of its row calls it.
struct Figure {
  double value, lo, hi;
  std::string status;  // of a target
};
using Figures = std::map<std::string, Figure>;

Figure figure_of(const json& estimate, const std::string& status = "") {
  return {estimate.at("value"), estimate.at("lo"), estimate.at("hi"), status};
}

/// Targets of the GPU record, by their ids.
Figures figures_of_targets(const json& record) {
  const std::string kTarget = "target ";
  Figures figures;
  for (const auto& [name, unit] : record.at("units").items()) {
    if (!name.starts_with(kTarget) || !unit.contains("speedup")) continue;
    figures[name.substr(kTarget.size())] = figure_of(unit.at("speedup"), unit.at("status"));
  }
  return figures;
}

/// Rows of `gauntlet bench`, as "decode, batch 8, context 512", "prefill 2048", "prefill 32 × 512".
Figures figures_of_bench(const json& reports) {
  Figures figures;
  for (const json& report : reports) {
    for (const json& row : report.at("rows")) {
      const auto number = [&](const char* name) {
        return std::to_string(row.at(name).get<std::int64_t>());
      };
      std::string name = "decode, batch " + number("batch") + ", context " + number("context");
      if (row.at("test") == "prefill") {
        if (number("context") != "0") continue;  // after other prompts
        name =
            "prefill " + (number("batch") == "1" ? "" : number("batch") + " × ") + number("tokens");
      }
      figures[name] = figure_of(row.at("tok_s"));
    }
  }
  return figures;
}

std::vector<std::string> cells_of(const std::string& row) {
  std::vector<std::string> cells;
  std::stringstream rest(row.substr(1));
  for (std::string cell; std::getline(rest, cell, '|');) {
    const auto begin = cell.find_first_not_of(' ');
    const auto end = cell.find_last_not_of(' ');
    cells.push_back(begin == std::string::npos ? "" : cell.substr(begin, end - begin + 1));
  }
  return cells;
}

/// As many digits as the page gives.
bool says(const std::string& printed, double value) {
  std::string digits;
  for (const char c : printed) {
    if (c != ',') digits += c;
  }
  const auto point = digits.find('.');
  const double unit = point == std::string::npos
                          ? 1
                          : std::pow(10, -static_cast<double>(digits.size() - point - 1));
  return std::abs(std::stod(digits) - value) <= unit * 0.5000001;
}

/// Empty when a row holds what its record says.
std::string fault_in_row(const std::string& row, const Figures& figures) {
  static const std::regex kEstimate(R"(([\d.,]*\d)(?:×)? \[([\d.,]*\d), ([\d.,]*\d)\])");
  const std::vector<std::string> cells = cells_of(row);
  const auto known = figures.find(cells.at(0));
  if (known == figures.end()) return "'" + cells[0] + "' is not in the record";
  std::smatch match;
  if (!std::regex_search(row, match, kEstimate)) return "'" + cells[0] + "' has no figure";
  const Figure& figure = known->second;
  if (!says(match[1], figure.value) || !says(match[2], figure.lo) || !says(match[3], figure.hi)) {
    std::stringstream what;
    what << "'" << cells[0] << "' says " << match[0] << ", the record " << figure.value << " ["
         << figure.lo << ", " << figure.hi << "]";
    return what.str();
  }
  const bool says_no_gain = row.find("`no_gain`") != std::string::npos;
  if (says_no_gain != (figure.status == "no_gain")) {
    return "'" + cells[0] + "' is " + figure.status + " in the record";
  }
  return "";
}

struct Checked {
  int rows = 0;
  std::vector<std::string> faults;
};

Checked check_tables(const std::string& page, const std::string& record, const Figures& figures) {
  Checked checked;
  std::stringstream lines(page);
  bool below_mark = false;
  int line_of_table = 0;
  for (std::string line; std::getline(lines, line);) {
    if (line == "<!-- figures: " + record + " -->") {
      below_mark = true;
      line_of_table = 0;
    } else if (below_mark && line.starts_with("|")) {
      if (++line_of_table <= 2) continue;  // its head
      ++checked.rows;
      if (auto fault = fault_in_row(line, figures); !fault.empty()) {
        checked.faults.push_back(std::move(fault));
      }
    } else if (line_of_table > 0) {
      below_mark = false;
    }
  }
  return checked;
}

json read_record(const std::string& path) {
  return json::parse(read_text(std::filesystem::path(GAUNTLET_SOURCE_DIR) / path));
}

Checked check_page(const std::string& page, const std::string& record, const Figures& figures) {
  return check_tables(read_text(std::filesystem::path(GAUNTLET_SOURCE_DIR) / page), record,
                      figures);
}

TEST(DocFigures, of_targets_are_those_of_the_gpu_record) {
  const std::string record = "tests/gpu/record.json";
  const Checked readme = check_page("README.md", record, figures_of_targets(read_record(record)));
  EXPECT_THAT(readme.faults, IsEmpty());
  EXPECT_GE(readme.rows, 5);
}

TEST(DocFigures, of_the_engine_are_those_of_its_benchmark) {
  const std::string record = "tests/gpu/engine.json";
  const Figures figures = figures_of_bench(read_record(record));
  for (const char* page : {"README.md", "docs/gpu-engine.md"}) {
    SCOPED_TRACE(page);
    const Checked checked = check_page(page, record, figures);
    EXPECT_THAT(checked.faults, IsEmpty());
    EXPECT_GE(checked.rows, 5);
  }
}

TEST(DocFigures, that_differ_are_found) {
  const Figures figures = {{"ch01:a", {.value = 1.234, .lo = 1.2, .hi = 1.3, .status = "passed"}},
                           {"ch01:b", {.value = 20412, .lo = 20100, .hi = 20499, .status = ""}},
                           {"ch01:c", {.value = 1, .lo = 0.99, .hi = 1.01, .status = "no_gain"}}};
  const auto faults = [&](const std::string& rows) {
    const std::string page = "<!-- figures: r.json -->\n| x | y |\n|---|---|\n" + rows + "\n\n|a|";
    return check_tables(page, "r.json", figures).faults;
  };
  EXPECT_THAT(faults("| ch01:a | 1.23× [1.20, 1.30] |"), IsEmpty());
  EXPECT_THAT(faults("| ch01:b | 20,412 [20,100, 20,499] |"), IsEmpty());
  EXPECT_THAT(faults("| ch01:c | 1.00× [0.99, 1.01] `no_gain` |"), IsEmpty());
  EXPECT_THAT(faults("| ch01:a | 1.24× [1.20, 1.30] |"), testing::SizeIs(1));
  EXPECT_THAT(faults("| ch01:a | 1.23× [1.20, 1.31] |"), testing::SizeIs(1));
  EXPECT_THAT(faults("| ch01:c | 1.00× [0.99, 1.01] |"), testing::SizeIs(1)) << "its status";
  EXPECT_THAT(faults("| ch01:b | about 20,000 |"), testing::ElementsAre(HasSubstr("no figure")));
  EXPECT_THAT(faults("| ch01:d | 1.23× [1.20, 1.30] |"),
              testing::ElementsAre(HasSubstr("not in the record")));
  EXPECT_EQ(check_tables("| ch01:a | 9× [9, 9] |", "r.json", figures).rows, 0) << "not marked";
}

}  // namespace
}  // namespace gauntlet::tests
