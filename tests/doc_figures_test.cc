// Do the pages say what the committed records say? Of a table under the line
// <!-- figures: tests/gpu/record.json --> every row's estimate is held against that record.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <regex>
#include <sstream>

#include "core/text/text.h"
#include "lab/author/catalog.h"
#include "stats/interval_json.h"
#include "tests/program.h"

namespace gauntlet::tests {
namespace {

using nlohmann::json;
using testing::HasSubstr;
using testing::IsEmpty;

struct Figure {
  stats::Interval estimate;
  std::string status;  // of a target
  json record = {};    // of a target: its unit's
};
using Figures = std::map<std::string, Figure>;  // by what the first cell of a row calls them

/// Targets of the GPU record, by their ids.
Figures figures_of_targets(const json& record) {
  const std::string kTarget = "target ";
  Figures figures;
  for (const auto& [name, unit] : record.at("units").items()) {
    if (!name.starts_with(kTarget) || !unit.contains("speedup")) continue;
    figures[name.substr(kTarget.size())] = {stats::interval_from_json(unit.at("speedup")),
                                            unit.at("status"), unit};
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
      figures[name] = {stats::interval_from_json(row.at("tok_s")), ""};
    }
  }
  return figures;
}

/// Comparisons of bench/serving.py, by their names: what is better by how much, or for a server how
/// much of decoding alone is left.
Figures figures_of_serving(const json& record) {
  Figures figures;
  for (const auto& [name, result] : record.at("results").items()) {
    const char* figure = result.contains("ratio") ? "ratio" : "of_decode";
    figures["`" + name + "`"] = {stats::interval_from_json(result.at(figure)), ""};
  }
  return figures;
}

std::string first_cell(const std::string& row) { return trim(row.substr(1, row.find('|', 1) - 1)); }

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
  const std::string name = first_cell(row);
  const auto known = figures.find(name);
  if (known == figures.end()) return "'" + name + "' is not in the record";
  std::smatch match;
  if (!std::regex_search(row, match, kEstimate)) return "'" + name + "' has no figure";
  const auto& [estimate, status, unit] = known->second;
  if (!says(match[1], estimate.value) || !says(match[2], estimate.lo) ||
      !says(match[3], estimate.hi)) {
    return fmt::format("'{}' says {}, the record {} [{}, {}]", name, match.str(), estimate.value,
                       estimate.lo, estimate.hi);
  }
  const bool says_no_gain = row.find("`no_gain`") != std::string::npos;
  if (says_no_gain != (status == "no_gain"))
    return "'" + name + "' is " + status + " in the record";
  return "";
}

/// Empty when a target may stand in a headline by its record: a comparison whose mechanism was
/// witnessed. Where a row says that nothing was gained, the witness was read at least.
std::string fault_in_evidence(const std::string& target, const Figure& figure) {
  const std::string kind = figure.record.value("kind", "");
  if (kind != "comparison") {
    return "'" + target + "' is " + (kind.empty() ? "of no kind" : "a " + kind) + " in the record";
  }
  const json witnesses = figure.record.value("witnesses", json::array());
  if (witnesses.empty()) return "'" + target + "' has no witness in the record";
  for (const json& witness : witnesses) {
    if (witness.at("moved") || figure.status == "no_gain" || witness.at("verdict") != "gain") {
      continue;
    }
    return fmt::format("'{}': {} went from {} to {}, which does not show the mechanism", target,
                       witness.at("name").dump(), witness.at("before").dump(),
                       witness.at("after").dump());
  }
  return "";
}

struct Checked {
  int rows = 0;
  std::vector<std::string> faults;
  std::vector<std::string> names;  // of the rows
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
      checked.names.push_back(first_cell(line));
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

TEST(DocFigures, of_headlines_are_of_comparisons_whose_witness_moved) {
  const std::string record = "tests/gpu/record.json";
  const Figures figures = figures_of_targets(read_record(record));
  const Checked readme = check_page("README.md", record, figures);
  const lab::Catalog catalog = lab::load_catalog();
  for (const std::string& name : readme.names) {
    ASSERT_TRUE(figures.contains(name)) << name;
    EXPECT_EQ(fault_in_evidence(name, figures.at(name)), "");
    const lab::Target* target = catalog.find(name);
    ASSERT_NE(target, nullptr) << name;
    const lab::BackendFacts& facts = target->facts(lab::BackendKind::cuda);
    EXPECT_EQ(facts.kind, lab::Kind::comparison) << name;
    for (const lab::SidePair& sides : target->comparisons(lab::BackendKind::cuda)) {
      if (sides.kind != lab::SidePair::Kind::pair && sides.kind != lab::SidePair::Kind::step) {
        continue;
      }
      EXPECT_NE(target->witness(lab::BackendKind::cuda, sides).source, lab::Witness::Source::none)
          << name;
    }
  }
}

TEST(DocFigures, of_serving_are_those_of_its_record) {
  const std::string record = "tests/records/serving-cpu.json";
  const Checked serving =
      check_page("docs/serving.md", record, figures_of_serving(read_record(record)));
  EXPECT_THAT(serving.faults, IsEmpty());
  EXPECT_GE(serving.rows, 1);
}

TEST(DocFigures, of_how_many_targets_passed_are_those_of_the_gpu_record) {
  std::map<std::string, int> targets;  // by status
  int all = 0;
  const json record = read_record("tests/gpu/record.json");
  for (const auto& [name, unit] : record.at("units").items()) {
    if (!name.starts_with("target ")) continue;
    ++targets[unit.at("status").get<std::string>()];
    ++all;
  }
  EXPECT_THAT(
      read_text(std::filesystem::path(GAUNTLET_SOURCE_DIR) / "README.md"),
      HasSubstr(fmt::format("of {} targets {} passed, {} show no gain, {} needs another GPU", all,
                            targets["passed"], targets["no_gain"], targets["skipped"])));
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
  const Figures figures = {{"ch01:a", {{.value = 1.234, .lo = 1.2, .hi = 1.3}, "passed"}},
                           {"ch01:b", {{.value = 20412, .lo = 20100, .hi = 20499}, ""}},
                           {"ch01:c", {{.value = 1, .lo = 0.99, .hi = 1.01}, "no_gain"}}};
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

TEST(DocFigures, without_a_witness_that_moved_are_found) {
  const auto fault = [](const char* status, const char* record) {
    return fault_in_evidence("ch01:a", {{}, status, json::parse(record)});
  };
  const std::string witness = R"([{"to": "optimized", "name": "loads", "before": 8, "after": )";
  const std::string moved = witness + R"(1, "moved": true, "verdict": "gain"}])";
  const std::string stood = witness + R"(8, "moved": false, "verdict": "gain"}])";
  const auto record = [](const std::string& kind, const std::string& witnesses) {
    return R"({"kind": ")" + kind + R"(", "witnesses": )" + witnesses + "}";
  };
  EXPECT_EQ(fault("passed", record("comparison", moved).c_str()), "");
  EXPECT_EQ(fault("no_gain", record("comparison", stood).c_str()), "");
  EXPECT_THAT(fault("passed", record("comparison", stood).c_str()),
              HasSubstr("\"loads\" went from 8 to 8"));
  EXPECT_THAT(fault("passed", record("comparison", "[]").c_str()), HasSubstr("no witness"));
  EXPECT_THAT(fault("passed", record("demonstration", moved).c_str()),
              HasSubstr("is a demonstration"));
  EXPECT_THAT(fault("passed", "{}"), HasSubstr("of no kind"));
}

}  // namespace
}  // namespace gauntlet::tests
