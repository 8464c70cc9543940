// Does the lab refuse every target of the catalogue whose side stops doing its work?
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "core/machine/machine.h"
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

/// The program's results by id. It measures no longer than until the first checks: what a side
/// gains by its sabotage is not the question.
std::map<std::string, json> sabotaged(BackendKind backend, const std::vector<std::string>& ids) {
  const TemporaryFolder artifacts;
  std::vector<std::string> argv = {GAUNTLET_SABOTAGE_BINARY,
                                   "run",
                                   "--format",
                                   "json",
                                   "--artifacts-dir",
                                   artifacts.path(),
                                   "--backend",
                                   lab::name_of(backend),
                                   "--no-ceilings",
                                   "--repeat",
                                   "1",
                                   "--iterations",
                                   "3"};
  for (const std::string& id : ids) argv.insert(argv.end(), {"--targets", id});
  std::map<std::string, json> results;
  const json answer = json_answer(run_program(argv));
  for (const json& result : answer.value("results", json::array())) {
    results[result.at("id")] = result;
  }
  return results;
}

/// Sides that can be spoiled: all but the first.
std::vector<std::string> sides_of(const std::string& id, BackendKind backend) {
  const lab::Catalog catalog = lab::load_catalog();
  std::vector<std::string> names;
  for (const lab::SideSource& side : catalog.find(id)->sides(backend)) names.push_back(side.name);
  names.erase(names.begin());
  return names;
}

/// Refused for what else kept the machine busy: then nothing is known of the sabotage.
bool is_refused_for_company(const json& result) {
  const std::string reason = result.at("reason");
  return std::ranges::any_of(
      std::initializer_list<const char*>{"was timed beside", "outside of its stream",
                                         "before its clock starts"},
      [&](const char* part) { return reason.find(part) != std::string::npos; });
}

/// Targets may be sabotaged beside one another on one GPU, so those that were disturbed are asked
/// again.
std::map<std::string, json> sabotaged_in_peace(BackendKind backend,
                                               const std::vector<std::string>& ids) {
  constexpr int kMostTries = 4;
  std::map<std::string, json> results;
  std::vector<std::string> left = ids;
  for (int tries = 0; tries < kMostTries && !left.empty(); ++tries) {
    for (const auto& [id, result] : sabotaged(backend, left)) results[id] = result;
    std::erase_if(left, [&](const std::string& id) {
      return !results.contains(id) || !is_refused_for_company(results.at(id));
    });
  }
  return results;
}

/// Each side of a target is refused when it does nothing, before anything is timed, and when it
/// loses half of its work once it is timed, by the check of a timed sample. Empty, or why the
/// target cannot run here.
std::string expect_refused(const std::string& id, BackendKind backend) {
  const std::vector<std::string> sides = sides_of(id, backend);
  std::vector<std::string> wanted;
  for (const std::string& side : sides) {
    for (const char* how : {".returns_at_once", ".loses_half"}) {
      wanted.push_back(id + "." + side + how);
    }
  }
  const std::map<std::string, json> results = sabotaged_in_peace(backend, wanted);
  for (const std::string& name : wanted) {
    SCOPED_TRACE(name);
    const auto found = results.find(name);
    if (found == results.end()) {
      ADD_FAILURE() << "there is no result of it";
      continue;
    }
    const std::string reason = found->second.at("reason");
    if (found->second.at("status") == "skipped") return reason;
    EXPECT_EQ(found->second.at("status"), "wrong") << reason;
    const std::string side = name.substr(id.size() + 1, name.rfind('.') - id.size() - 1);
    EXPECT_THAT(reason, StartsWith(side + " "));
    EXPECT_THAT(reason, AnyOf(HasSubstr("left part of its output unwritten"),
                              HasSubstr("gave a wrong result"), HasSubstr("an answer is kept")));
    const bool when_timed = name.ends_with(".loses_half");
    EXPECT_THAT(reason, HasSubstr(when_timed ? "(output of a timed sample)" : "(before timing)"));
    EXPECT_TRUE(found->second.at("comparisons").empty()) << "a spoiled side gets no speedup";
  }
  return "";
}

/// The honest twins of some targets; of those that this build has.
void expect_verified(std::vector<std::string> ids, BackendKind backend) {
  const lab::Catalog catalog = lab::load_catalog();
  std::erase_if(ids, [&](const std::string& id) {
    return catalog.find(id.substr(0, id.find('.'))) == nullptr;
  });
  if (ids.empty()) GTEST_SKIP() << "none of these targets is built";
  const std::map<std::string, json> results = sabotaged(backend, ids);
  EXPECT_EQ(results.size(), ids.size());
  for (const auto& [id, result] : results) {
    EXPECT_THAT(result.at("status").get<std::string>(), AnyOf("passed", "no_gain"))
        << id << ": " << result.at("reason");
    EXPECT_FALSE(result.at("comparisons").empty()) << id;
  }
}

/// Of all targets with sides on a backend, and so in other programs.
std::vector<std::string> targets_on(BackendKind backend) {
  const lab::Catalog catalog = lab::load_catalog();
  std::vector<std::string> ids;
  for (const lab::Target& target : catalog.targets()) {
    if (target.has(backend)) ids.push_back(target.id());
  }
  return ids;
}

std::string test_name(const testing::TestParamInfo<std::string>& target) {
  std::string name = target.param;
  std::ranges::replace(name, ':', '_');
  return name;
}

class SabotageOnCpu : public testing::TestWithParam<std::string> {};
class SabotageOnGpu : public testing::TestWithParam<std::string> {};

TEST_P(SabotageOnCpu, is_refused) {
  const std::string skipped = expect_refused(GetParam(), BackendKind::cpu);
  if (!skipped.empty()) GTEST_SKIP() << GetParam() << " was not sabotaged: " << skipped;
}

TEST_P(SabotageOnGpu, is_refused) {
  const MachineInfo machine = read_machine(true);
  if (machine.gpus.empty()) {
    GTEST_SKIP() << GetParam() << " was not sabotaged: " << machine.no_gpu_reason;
  }
  const std::string skipped = expect_refused(GetParam(), BackendKind::cuda);
  if (!skipped.empty()) GTEST_SKIP() << GetParam() << " was not sabotaged: " << skipped;
}

INSTANTIATE_TEST_SUITE_P(All, SabotageOnCpu, testing::ValuesIn(targets_on(BackendKind::cpu)),
                         test_name);
INSTANTIATE_TEST_SUITE_P(All, SabotageOnGpu, testing::ValuesIn(targets_on(BackendKind::cuda)),
                         test_name);

TEST(HonestTwinsOnCpu, of_sabotage_are_verified) {
  expect_verified({"ch06:parallel_add.optimized.honest", "ch07:vectorized_copy.optimized.honest",
                   "ch08:predication.optimized.honest"},
                  BackendKind::cpu);
}

TEST(HonestTwinsOnGpu, of_sabotage_are_verified) {
  const MachineInfo machine = read_machine(true);
  if (machine.gpus.empty()) {
    GTEST_SKIP() << "no twin was tried: " << machine.no_gpu_reason;
  }
  expect_verified({"ch06:block_sizing.optimized.honest", "ch07:vectorized_copy.optimized.honest",
                   "ch08:predication.optimized.honest"},
                  BackendKind::cuda);
}

}  // namespace
}  // namespace gauntlet::tests
