// Does the lab refuse every target of several ranks whose side stops doing its work?
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "lab/targets/catalog.h"
#include "tests/json_answer.h"
#include "tests/program.h"

namespace gauntlet::tests {
namespace {

using lab::BackendKind;
using nlohmann::json;
using testing::AnyOf;
using testing::HasSubstr;
using testing::StartsWith;

constexpr const char* kRanks = "4";  // the most that a target needs

/// Ranks as threads: what they are carried by is not the question. It measures no longer than until
/// the first checks.
json spoiled(const std::string& id) {
  const TemporaryFolder artifacts;
  const json answer = json_answer(run_program(
      {GAUNTLET_SABOTAGE_BINARY, "run", "--format", "json", "--artifacts-dir", artifacts.path(),
       "--backend", "ranks", "--ranks", kRanks, "--launcher", "threads", "--no-ceilings",
       "--repeat", "1", "--iterations", "3", "--targets", id}));
  const json results = answer.value("results", json::array());
  return results.empty() ? json{{"status", "missing"}, {"reason", ""}} : results.front();
}

/// Refused for what else kept the machine busy: then nothing is known of the sabotage.
bool is_refused_for_company(const json& result) {
  const std::string reason = result.at("reason");
  return reason.find("was timed beside") != std::string::npos ||
         reason.find("before its clock starts") != std::string::npos;
}

json spoiled_in_peace(const std::string& id) {
  json result = spoiled(id);
  for (int more = 0; more < 3 && is_refused_for_company(result); ++more) result = spoiled(id);
  return result;
}

std::vector<std::string> targets_of_ranks() {
  const lab::Catalog catalog = lab::load_catalog();
  std::vector<std::string> ids;
  for (const lab::Target& target : catalog.targets()) {
    if (target.has(BackendKind::ranks)) ids.push_back(target.id());
  }
  return ids;
}

std::string test_name(const testing::TestParamInfo<std::string>& target) {
  std::string name = target.param;
  std::ranges::replace(name, ':', '_');
  return name;
}

class SabotageOnRanks : public testing::TestWithParam<std::string> {};

TEST_P(SabotageOnRanks, is_refused) {
  for (const std::string how : {"returns_at_once", "loses_half"}) {
    const json result = spoiled_in_peace(GetParam() + ".optimized." + how);
    SCOPED_TRACE(how);
    const std::string reason = result.at("reason");
    if (result.at("status") == "skipped") GTEST_SKIP() << reason;
    EXPECT_EQ(result.at("status"), "wrong") << reason;
    EXPECT_THAT(reason, StartsWith("optimized "));
    EXPECT_THAT(reason, AnyOf(HasSubstr("left part of its output unwritten"),
                              HasSubstr("gave a wrong result"), HasSubstr("an answer is kept")));
    EXPECT_THAT(reason,
                HasSubstr(how == "loses_half" ? "(output of a timed sample)" : "(before timing)"));
    EXPECT_TRUE(result.at("comparisons").empty()) << "a spoiled side gets no speedup";
  }
}

INSTANTIATE_TEST_SUITE_P(All, SabotageOnRanks, testing::ValuesIn(targets_of_ranks()), test_name);

TEST(HonestTwinsOnRanks, of_sabotage_is_verified) {
  const std::vector<std::string> ids = targets_of_ranks();
  if (ids.empty()) GTEST_SKIP() << "this build has no targets of ranks";
  const json result = spoiled_in_peace(ids.front() + ".optimized.honest");
  EXPECT_THAT(result.at("status").get<std::string>(), AnyOf("passed", "no_gain"))
      << result.at("reason");
}

}  // namespace
}  // namespace gauntlet::tests
