// Does the lab hold what a catalogue needs beyond pairs of two sides: ladders, ranks, goals other
// than speed, the engine and servers, from the run to its trend?
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>

#include "core/ranks/mpi_group.h"
#include "core/ranks/start.h"
#include "tests/program.h"

namespace gauntlet::tests {
namespace {

using nlohmann::json;
using testing::AnyOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

/// Runs of the doubles, one after the other, in a folder of their own.
class Doubles : public testing::Test {
 protected:
  Outcome command(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), GAUNTLET_DOUBLES_BINARY);
    arguments.insert(arguments.end(), {"--artifacts-dir", artifacts_.path()});
    return run_program(arguments);
  }
  json command_json(std::vector<std::string> arguments) {
    arguments.insert(arguments.end(), {"--format", "json"});
    const Outcome outcome = command(arguments);
    json parsed = json::parse(outcome.out, nullptr, false);
    EXPECT_FALSE(parsed.is_discarded()) << outcome.out << outcome.err;
    return parsed;
  }
  /// Results by id. Few blocks of two processes: the gains here are plain to see.
  std::map<std::string, json> run(const std::vector<std::string>& targets,
                                  const std::string& launcher, std::vector<std::string> more = {}) {
    std::vector<std::string> arguments = {"run",
                                          "--backend",
                                          "all",
                                          "--launcher",
                                          launcher,
                                          "--repeat",
                                          "2",
                                          "--iterations",
                                          "6",
                                          "--no-ceilings",
                                          "--timeout",
                                          "60",
                                          "--expectations-dir",
                                          expectations_.path(),
                                          "--targets"};
    arguments.insert(arguments.end(), targets.begin(), targets.end());
    arguments.insert(arguments.end(), more.begin(), more.end());
    const json answer = command_json(arguments);
    std::map<std::string, json> results;
    if (!answer.is_object()) return results;
    run_id_ = answer.at("run_id");
    for (const json& result : answer.at("results")) results[result.at("id")] = result;
    return results;
  }
  std::string report() const { return read_text(artifacts_.path() / run_id_ / "report.md"); }
  /// The row of a comparison of two runs, by target and metric.
  static json difference(const json& compared, const std::string& id, const std::string& metric) {
    for (const json& row : compared.at("differences")) {
      if (row.at("id") == id && row.at("metric") == metric) return row;
    }
    ADD_FAILURE() << "no row of " << id << " " << metric << " in " << compared.dump(1);
    return {};
  }

  TemporaryFolder artifacts_, expectations_;
  std::string run_id_;
};

std::vector<std::string> names_of(const json& list, const char* key) {
  std::vector<std::string> names;
  for (const json& one : list) names.push_back(one.at(key));
  return names;
}

TEST_F(Doubles, of_a_lab_go_from_run_to_history) {
  json lab =
      run({"labs:scale_ladder"}, "threads", {"--update-expectations"}).at("labs:scale_ladder");
  ASSERT_EQ(lab.at("status"), "passed") << lab.at("reason");
  EXPECT_THAT(names_of(lab.at("sides"), "name"), ElementsAre("naive", "four", "once", "library"));
  EXPECT_EQ(lab.at("sides").at(3).at("role"), "yardstick");
  EXPECT_THAT(names_of(lab.at("comparisons"), "kind"),
              ElementsAre("step", "step", "total", "yardstick"));
  EXPECT_TRUE(lab.at("comparisons").at(0).at("witness").at("moved"));
  EXPECT_GT(lab.at("comparisons").at(2).at("speedup").at("value"), 3);
  EXPECT_TRUE(lab.at("ranks").is_null());
  EXPECT_THAT(report(), HasSubstr("### `labs:scale_ladder` on cpu"));
  EXPECT_THAT(report(), HasSubstr("the speed of the yardstick `library`"));
  // A worker goes by what it is asked for, not by whose mpirun it is below.
  setenv("OMPI_COMM_WORLD_SIZE", "1", 1);
  lab = run({"labs:scale_ladder"}, "threads").at("labs:scale_ladder");
  unsetenv("OMPI_COMM_WORLD_SIZE");
  EXPECT_THAT(lab.at("status"), AnyOf("passed", "regressed")) << "by its expectation";
  const json compared = command_json({"compare"});
  ASSERT_EQ(compared.at("differences").size(), 4u);
  for (const json& row : compared.at("differences")) EXPECT_EQ(row.at("metric"), "speed");
  EXPECT_THAT(command({"compare"}).out, HasSubstr("naive → once (total)"));
  const json history = command_json({"history", "labs:scale_ladder"});
  ASSERT_EQ(history.size(), 2u);
  EXPECT_EQ(history.at(0).at("comparisons").size(), 4u);
  EXPECT_THAT(command({"history", "labs:scale_ladder", "--all"}).out,
              HasSubstr("library → once (yardstick)"));
}

TEST_F(Doubles, of_a_lab_go_on_without_a_yardstick_that_cannot_be_here) {
  const std::string id = "labs:lone_ladder";
  json lab = run({id}, "threads", {"--update-expectations"}).at(id);
  ASSERT_EQ(lab.at("status"), "passed") << lab.at("reason");
  EXPECT_THAT(names_of(lab.at("sides"), "name"), ElementsAre("naive", "once", "here"));
  EXPECT_THAT(names_of(lab.at("comparisons"), "kind"), ElementsAre("step", "yardstick"));
  EXPECT_THAT(names_of(lab.at("absent"), "name"), ElementsAre("absent"));
  const std::string note = "without the yardstick absent: needs 4096 NUMA nodes, there is ";
  EXPECT_THAT(lab.at("absent").at(0).at("reason"), StartsWith("needs 4096 NUMA nodes"));
  EXPECT_THAT(lab.at("notes").at(0), StartsWith(note));
  EXPECT_THAT(report(), HasSubstr("`labs:lone_ladder` on cpu: " + note));
  EXPECT_THAT(report(), Not(HasSubstr("the speed of the yardstick `absent`")));
  const std::string console = command({"run", "--targets", id, "--repeat", "2", "--iterations", "6",
                                       "--no-ceilings", "--expectations-dir", expectations_.path()})
                                  .out;
  EXPECT_THAT(console, HasSubstr(note));
  EXPECT_THAT(console, HasSubstr("over here"));
  EXPECT_THAT(console, Not(HasSubstr("over absent")));
  EXPECT_EQ(command_json({"compare"}).at("differences").size(), 2u);
  const json history = command_json({"history", id});
  ASSERT_EQ(history.size(), 2u);
  EXPECT_EQ(history.at(1).at("comparisons").size(), 2u);
  const json listed = json::parse(
      run_program({GAUNTLET_DOUBLES_BINARY, "list", id, "--format", "json"}).out, nullptr, false);
  ASSERT_EQ(listed.size(), 1u) << listed;
  EXPECT_EQ(listed.at(0).at("needs"), json::array());
  EXPECT_EQ(listed.at(0).at("yardstick_needs"), json({{"absent", {"4096 NUMA nodes"}}}));
  EXPECT_THAT(run_program({GAUNTLET_DOUBLES_BINARY, "list", id}).out,
              HasSubstr("4096 NUMA nodes for its yardstick"));
}

TEST_F(Doubles, of_a_tail_latency_are_judged_compared_and_trended_by_its_percentile) {
  const std::string id = "doubles:queue_tail";
  const json pair = run({id}, "threads", {"--update-expectations"}).at(id);
  ASSERT_EQ(pair.at("status"), "passed") << pair.at("reason");
  EXPECT_EQ(pair.at("goal_metric"), "request_p99_us");
  const json& p99 = pair.at("metrics").at("request_p99_us").at("sides");
  for (const json& side : p99) {
    EXPECT_LE(side.at("lo"), side.at("value"));
    EXPECT_GE(side.at("hi"), side.at("value"));
  }
  EXPECT_GT(p99.at(0).at("value"), p99.at(1).at("value"));
  const json& gain = pair.at("comparisons").at(0).at("gain");
  EXPECT_GT(gain.at("lo"), 1.02);
  EXPECT_EQ(pair.at("comparisons").at(0).at("verdict"), "gain");
  EXPECT_THAT(report(), HasSubstr("judged by tail_latency, not speed: request_p99_us is "));
  const json expected =
      json::parse(run_program({GAUNTLET_DOUBLES_BINARY, "expectations", "--expectations-dir",
                               expectations_.path(), "--format", "json"})
                      .out,
                  nullptr, false);
  ASSERT_TRUE(expected.is_array()) << expected;
  EXPECT_EQ(expected.at(0).at("ratios").at(0).at("gain").at("value"), gain.at("value"));
  run({id}, "threads");
  const json compared = command_json({"compare"});
  EXPECT_FALSE(difference(compared, id, "request_p99_us").at("ratio").is_null());
  EXPECT_FALSE(difference(compared, id, "speed").at("ratio").is_null());
  EXPECT_THAT(command({"compare"}).out, HasSubstr(id + " request_p99_us"));
  const json history = command_json({"history", id});
  EXPECT_EQ(history.at(1).at("comparisons").at(0).at("gain").at("value"), gain.at("value"));
  EXPECT_THAT(command({"history", id}).out, HasSubstr("request_p99_us"));
}

TEST_F(Doubles, of_ranks_run_as_threads_and_lies_of_one_rank_are_found) {
  const auto results =
      run({"doubles:rank_sum", "doubles:rank_skips", "doubles:rank_works_late"}, "threads");
  const json& honest = results.at("doubles:rank_sum");
  ASSERT_EQ(honest.at("status"), "passed") << honest.at("reason");
  EXPECT_EQ(honest.at("ranks"), (json{{"count", 2}, {"transport", "threads"}}));
  EXPECT_THAT(report(), HasSubstr("2 ranks (threads)"));
  const json& skips = results.at("doubles:rank_skips");
  EXPECT_EQ(skips.at("status"), "wrong");
  EXPECT_THAT(skips.at("reason"), StartsWith("rank 1: optimized "));
  const json& late = results.at("doubles:rank_works_late");
  EXPECT_EQ(late.at("status"), "wrong");
  EXPECT_THAT(late.at("reason"), HasSubstr("optimized"));
  const auto alone = run({"doubles:rank_sum"}, "threads", {"--ranks", "1"});
  EXPECT_EQ(alone.at("doubles:rank_sum").at("status"), "skipped");
  EXPECT_EQ(alone.at("doubles:rank_sum").at("reason"),
            "needs 2 ranks, this run starts 1: use --ranks 2");
}

TEST_F(Doubles, of_ranks_run_under_mpi_and_are_not_mixed_with_threads) {
  if (const auto mpirun = ranks::find_mpirun(); !mpirun) GTEST_SKIP() << mpirun.error().message;
  if (const auto library = ranks::find_mpi_library(); !library) {
    GTEST_SKIP() << library.error().message;
  }
  run({"doubles:rank_sum"}, "threads");
  const auto results = run({"doubles:rank_sum", "doubles:rank_skips", "doubles:rank_works_late"},
                           "mpi", {"--profile", "minimal"});
  const json& honest = results.at("doubles:rank_sum");
  ASSERT_EQ(honest.at("status"), "passed")
      << honest.at("reason") << read_text(artifacts_.path() / run_id_ / honest.at("log"));
  EXPECT_EQ(honest.at("ranks"), (json{{"count", 2}, {"transport", "mpi"}}));
  EXPECT_EQ(results.at("doubles:rank_skips").at("status"), "wrong");
  EXPECT_THAT(results.at("doubles:rank_skips").at("reason"), StartsWith("rank 1: optimized "));
  EXPECT_EQ(results.at("doubles:rank_works_late").at("status"), "wrong");
  for (const auto& file :
       std::filesystem::directory_iterator(artifacts_.path() / run_id_ / "logs")) {
    EXPECT_THAT(file.path().filename(), testing::Not(StartsWith("token")));
  }
  const json compared = command_json({"compare"});
  std::map<std::string, std::string> verdicts;
  for (const json& row : compared.at("differences")) {
    if (row.at("id") == "doubles:rank_sum") verdicts[row.at("on")] = row.at("verdict");
  }
  EXPECT_EQ(verdicts, (std::map<std::string, std::string>{{"2 ranks (mpi)", "only in B"},
                                                          {"2 ranks (threads)", "only in A"}}));
  const json history = command_json({"history", "doubles:rank_sum"});
  EXPECT_THAT(names_of(history, "on"), ElementsAre("2 ranks (mpi)", "2 ranks (threads)"));
}

TEST_F(Doubles, of_the_engine_and_a_server_keep_their_helpers) {
  const auto results = run({"doubles:batched_decode", "doubles:served_load"}, "threads");
  const json& engine = results.at("doubles:batched_decode");
  // Threads that spin for each other on a shared machine may hide the gain: what counts is that
  // they are let be, and are seen to take fewer steps.
  EXPECT_THAT(engine.at("status"), AnyOf("passed", "no_gain")) << engine.at("reason");
  EXPECT_TRUE(engine.at("comparisons").at(0).at("witness").at("moved"));
  const json& served = results.at("doubles:served_load");
  EXPECT_THAT(served.at("status"), AnyOf("passed", "no_gain"))
      << served.at("reason") << read_text(artifacts_.path() / run_id_ / served.at("log"));
  EXPECT_GT(served.at("metrics").at("requests_per_second").at("sides").at(1).at("value"), 0);
}

}  // namespace
}  // namespace gauntlet::tests
