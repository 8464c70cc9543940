// Commands besides generate and serve on several ranks: what they print, and what they refuse.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <regex>

#include "core/ranks/mpi_group.h"
#include "core/ranks/start.h"
#include "tests/program.h"

namespace gauntlet::tests {
namespace {

using nlohmann::json;
using testing::HasSubstr;
using Words = std::vector<std::string>;

Outcome gauntlet(Words words) {
  words.insert(words.begin(), GAUNTLET_BINARY);
  return run_program(words);
}

Words perplexity(Words more) {
  Words words = {"perplexity", "--file",    std::string(GAUNTLET_SOURCE_DIR) + "/LICENSE",
                 "--window",   "256",       "--backend",
                 "cpu",        "--threads", "1",
                 "--format",   "json"};
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

Words bench(Words more) {
  Words words = {"bench", "--prefill", "32",  "--decode",  "4", "--seconds", "0",   "--repetitions",
                 "2",     "--backend", "cpu", "--threads", "1", "--format",  "json"};
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

TEST(RankCommands, perplexity_of_ranks_is_that_of_one) {
  const Outcome alone = gauntlet(perplexity({}));
  ASSERT_EQ(alone.code, 0) << alone.err;
  const Outcome divided =
      gauntlet(perplexity({"--mesh", "tp2,pp2", "--local-ranks", "4", "--rank-sums", "ordered"}));
  EXPECT_EQ(divided.code, 0) << divided.err;
  EXPECT_EQ(divided.out, alone.out);
}

TEST(RankCommands, bench_measures_several_executors_on_ranks) {
  const Outcome divided = gauntlet(bench({"--mesh", "tp2", "--local-ranks", "2"}));
  ASSERT_EQ(divided.code, 0) << divided.err;
  const json report = json::parse(divided.out);
  EXPECT_THAT(report.dump(), HasSubstr("on each of 2 ranks, tp2"));
  std::set<std::string> activations;
  for (const json& row : report.at("rows")) activations.insert(row.at("activations"));
  EXPECT_EQ(activations.size(), 2u) << "f32 and what suits the machine";
}

TEST(RankCommands, analyze_compares_numbers_of_ranks) {
  const TemporaryFolder folder;
  const Outcome outcome = gauntlet({"analyze", "--ranks", "2,1", "--rounds", "2", "--output",
                                    folder / "ranks", "--format", "json"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const json scaling = json::parse(outcome.out);
  EXPECT_EQ(scaling, json::parse(read_text(folder / "ranks/ranks.json")));
  ASSERT_EQ(scaling.at("points").size(), 6u);
  EXPECT_EQ(scaling.at("points")[0].at("ranks"), 1);
  EXPECT_EQ(scaling.at("points")[1].at("mesh"), "tp2,ep2");
  EXPECT_GT(scaling.at("points")[1].at("tok_s").at("value"), 0);
  EXPECT_THAT(read_text(folder / "ranks/ranks.html"), HasSubstr("<svg"));
  EXPECT_THAT(read_text(folder / "ranks/ranks.md"), HasSubstr("| decode, batch 8 | 2 |"));
}

TEST(RankCommands, refuse_what_they_do_not_do_in_one_sentence) {
  const std::pair<Words, const char*> wrong[] = {
      {{"analyze", "--mesh", "tp2"}, "--ranks 1,2,4 compares meshes"},
      {{"analyze", "--ranks", "1,1"}, "takes each number once"},
      {{"analyze", "--ranks", "1,61"}, "61 ranks divide neither"},
      {{"analyze", "--ranks", "2", "--backend", "cuda"}, "measures ranks of CPUs"},
      {{"generate", "--local-ranks", "2", "--mesh", "pp2", "--backend", "cuda", "--prompt", "a"},
       "stages (pp) run on CPUs"},
      {{"serve", "--mesh", "tp2", "--backend", "cuda", "--rank-sums", "ordered"},
       "is for ranks of CPUs"},
      {{"chat", "--mesh", "tp2"}, "--mesh"},
      {{"load", "--mesh", "tp2"}, "--mesh"},
      {{"serve", "--mesh", "tp2"}, "start them with mpirun -n 2, or give --local-ranks 2"},
      {{"serve", "--mesh", "tp2", "--local-ranks", "2", "--speculate", "eagle3", "--draft-model",
        std::string(GAUNTLET_SOURCE_DIR) + "/models/gauntlet-tiny-eagle3"},
       "which ranks do not export: leave out --mesh"},
      {{"doctor", "--ranks-env", "x"}, "--ranks"}};
  for (const auto& [words, sentence] : wrong) {
    const Outcome outcome = gauntlet(words);
    EXPECT_NE(outcome.code, 0) << words[0];
    EXPECT_THAT(outcome.err, HasSubstr(sentence));
    EXPECT_EQ(outcome.out, "") << words[0];
    if (words[0] == "analyze") {
      EXPECT_EQ(std::ranges::count(outcome.err, '\n'), 1) << outcome.err;
    }
  }
}

TEST(RankCommands, doctor_says_what_a_job_needs) {
  const Outcome outcome = gauntlet({"doctor", "--ranks", "--format", "json"});
  std::set<std::string> names;
  for (const json& one : json::parse(outcome.out)) {
    EXPECT_EQ(one.at("area"), "ranks");
    names.insert(one.at("name"));
    if (one.at("level") != "ok") {
      EXPECT_NE(one.at("fix"), "") << one.dump();
    }
  }
  for (const char* name : {"mpirun", "libmpi", "CPUs", "binding", "shared memory", "host name",
                           "lost ranks", "locked memory", "session folder", "user"}) {
    EXPECT_TRUE(names.contains(name)) << name;
  }
}

class CommandsOnRanks : public testing::Test {
 protected:
  void SetUp() override {
    if (const auto library = ranks::find_mpi_library(); !library) {
      GTEST_SKIP() << library.error().message;
    }
    if (const auto mpirun = ranks::find_mpirun(); !mpirun) GTEST_SKIP() << mpirun.error().message;
  }
  static Outcome under_mpirun(Words words) {
    words.insert(words.begin(), GAUNTLET_BINARY);
    return run_program(ranks::mpirun_command(2, words).value());
  }
};

TEST_F(CommandsOnRanks, print_from_rank_0_alone) {
  const Outcome scored = under_mpirun(perplexity({"--mesh", "tp2", "--rank-sums", "ordered"}));
  EXPECT_EQ(scored.code, 0) << scored.err;
  EXPECT_EQ(scored.out, gauntlet(perplexity({})).out);
  const Outcome measured = under_mpirun(bench({"--mesh", "tp2"}));
  EXPECT_EQ(measured.code, 0) << measured.err;
  EXPECT_FALSE(json::parse(measured.out).at("rows").empty());
}

TEST_F(CommandsOnRanks, doctor_times_sums_and_writes_what_is_worth_setting) {
  const Outcome timed = under_mpirun({"doctor", "--ranks"});
  EXPECT_EQ(timed.code, 0) << timed.err;
  EXPECT_THAT(timed.out, HasSubstr("sum of 11520 bytes"));
  const TemporaryFolder folder;
  const Outcome compared =
      gauntlet({"doctor", "--ranks", "--ranks-env", folder / "ranks.env", "--rounds", "1"});
  EXPECT_EQ(compared.code, 0) << compared.err << compared.out;
  const std::string presets = read_text(folder / "ranks.env");
  EXPECT_THAT(presets, HasSubstr("# as it is: 1024 B"));
  EXPECT_THAT(presets, HasSubstr("# recursive_doubling:"));
  std::istringstream lines(presets);
  for (std::string line; std::getline(lines, line);) {
    EXPECT_TRUE(std::regex_match(line, std::regex("#.*|OMPI_MCA_[a-z_]+=[a-z0-9_]+"))) << line;
  }
}

}  // namespace
}  // namespace gauntlet::tests
