// Are the targets that README shows comparisons, and was the mechanism of each witnessed where it
// was measured?
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "lab/targets/catalog.h"
#include "tests/pages/doc_tables.h"
#include "tests/program.h"

namespace gauntlet::tests {
namespace {

using nlohmann::json;
using testing::HasSubstr;
using testing::SizeIs;

/// Targets in README's tables of the GPU record.
std::vector<std::string> headlines() {
  const std::filesystem::path root = GAUNTLET_SOURCE_DIR;
  const Page page = parse_page(root / "README.md", read_text(root / "README.md"));
  std::vector<std::string> names;
  for (const Table& table : page.tables) {
    if (table.mark.find("tests/gpu/record.json") == std::string::npos) continue;
    for (const Row& row : table.rows) {
      if (row.cells.at(0).find(':') != std::string::npos) names.push_back(row.cells.at(0));
    }
  }
  return names;
}

/// Empty when a target may stand in a headline by its unit of the record: a comparison whose
/// mechanism was witnessed. Where nothing was gained, the witness was read at least.
std::string fault_in_evidence(const std::string& target, const json& unit) {
  const std::string kind = unit.value("kind", "");
  if (kind != "comparison") {
    return "'" + target + "' is " + (kind.empty() ? "of no kind" : "a " + kind) + " in the record";
  }
  const json witnesses = unit.value("witnesses", json::array());
  if (witnesses.empty()) return "'" + target + "' has no witness in the record";
  for (const json& witness : witnesses) {
    if (witness.at("moved") || unit.at("status") == "no_gain" || witness.at("verdict") != "gain") {
      continue;
    }
    return fmt::format("'{}': {} went from {} to {}, which does not show the mechanism", target,
                       witness.at("name").dump(), witness.at("before").dump(),
                       witness.at("after").dump());
  }
  return "";
}

TEST(DocHeadlines, are_comparisons_that_name_a_witness) {
  const lab::Catalog catalog = lab::load_catalog();
  EXPECT_THAT(headlines(), SizeIs(testing::Ge(5u)));
  for (const std::string& name : headlines()) {
    const lab::Target* target = catalog.find(name);
    ASSERT_NE(target, nullptr) << name;
    EXPECT_EQ(target->facts(lab::BackendKind::cuda).kind, lab::Kind::comparison) << name;
    for (const lab::SidePair& sides : target->comparisons(lab::BackendKind::cuda)) {
      if (sides.kind != lab::SidePair::Kind::pair && sides.kind != lab::SidePair::Kind::step) {
        continue;
      }
      EXPECT_NE(target->witness(lab::BackendKind::cuda, sides).source, lab::Witness::Source::none)
          << name;
    }
  }
}

TEST(DocHeadlines, were_witnessed_where_they_were_measured) {
  const json record =
      json::parse(read_text(std::filesystem::path(GAUNTLET_SOURCE_DIR) / "tests/gpu/record.json"));
  for (const std::string& name : headlines()) {
    EXPECT_EQ(fault_in_evidence(name, record.at("units").at("target " + name)), "");
  }
}

TEST(DocHeadlines, without_a_witness_that_moved_are_found) {
  const auto fault = [](const std::string& status, const std::string& kind,
                        const std::string& witnesses) {
    return fault_in_evidence(
        "ch01:a", {{"status", status}, {"kind", kind}, {"witnesses", json::parse(witnesses)}});
  };
  const std::string witness = R"([{"to": "optimized", "name": "loads", "before": 8, "after": )";
  const std::string moved = witness + R"(1, "moved": true, "verdict": "gain"}])";
  const std::string stood = witness + R"(8, "moved": false, "verdict": "gain"}])";
  EXPECT_EQ(fault("passed", "comparison", moved), "");
  EXPECT_EQ(fault("no_gain", "comparison", stood), "");
  EXPECT_THAT(fault("passed", "comparison", stood), HasSubstr("\"loads\" went from 8 to 8"));
  EXPECT_THAT(fault("passed", "comparison", "[]"), HasSubstr("no witness"));
  EXPECT_THAT(fault("passed", "demonstration", moved), HasSubstr("is a demonstration"));
  EXPECT_THAT(fault_in_evidence("ch01:a", {{"status", "passed"}}), HasSubstr("of no kind"));
}

}  // namespace
}  // namespace gauntlet::tests
