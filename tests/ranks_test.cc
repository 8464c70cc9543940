// Does the binary run a model on several ranks: as threads, under mpirun, and where one is lost?
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <thread>

#include "core/ranks/mpi_group.h"
#include "core/ranks/start.h"
#include "tests/program.h"

namespace gauntlet::tests {
namespace {

using nlohmann::json;
using testing::HasSubstr;
using Words = std::vector<std::string>;

constexpr const char* kPrompt = "It was the best of times, it was the worst of times,";

Words generate(const Words& options, const std::string& tokens = "24") {
  Words argv = {GAUNTLET_BINARY, "generate", "--backend",    "cpu", "--threads", "1",
                "--prompt",      kPrompt,    "--max-tokens", tokens};
  argv.insert(argv.end(), options.begin(), options.end());
  return argv;
}

json made(const Words& argv) {
  const Outcome outcome = run_program(argv);
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  return json::parse(outcome.out, nullptr, false);
}

std::string refusal(const Words& options) {
  const Outcome outcome = run_program(generate(options));
  EXPECT_EQ(outcome.code, 2) << outcome.err;
  EXPECT_EQ(outcome.out, "");
  return outcome.err;
}

TEST(Ranks, of_one_process_make_the_text_of_one) {
  const json alone = made(generate({"--format", "json"}));
  for (const char* mesh : {"tp2", "tp4", "ep2", "pp3", "tp2,pp2"}) {
    const std::string ranks = std::string(mesh) == "tp2,pp2" ? "4" : std::string(1, mesh[2]);
    const json divided = made(generate(
        {"--local-ranks", ranks, "--mesh", mesh, "--rank-sums", "ordered", "--format", "json"}));
    EXPECT_EQ(divided.at("output_ids"), alone.at("output_ids")) << mesh;
    EXPECT_EQ(divided.at("text"), alone.at("text")) << mesh;
  }
  const Outcome text = run_program(generate({"--local-ranks", "2"}));
  EXPECT_EQ(text.code, 0) << text.err;
  EXPECT_NE(text.out, "");
}

TEST(Ranks, are_refused_in_one_sentence) {
  EXPECT_THAT(refusal({"--mesh", "tp2"}),
              HasSubstr("start them with mpirun -n 2, or give --local-ranks 2"));
  EXPECT_THAT(refusal({"--mesh", "tp2", "--local-ranks", "3"}), HasSubstr("has 2 ranks"));
  EXPECT_THAT(refusal({"--mesh", "cp2"}), HasSubstr("cp2 is not there yet"));
  EXPECT_THAT(refusal({"--mesh", "tp3", "--local-ranks", "3"}),
              HasSubstr("tp3 does not divide 4 query heads and 2 KV heads; the nearest that do are "
                        "tp2 and tp4"));
}

TEST(MeshCommand, tells_who_holds_what) {
  const json all = made(
      {GAUNTLET_BINARY, "mesh", "--shape", "gpt-oss-120b", "--ranks", "8", "--format", "json"});
  EXPECT_EQ(all.at("mesh"), "tp8,ep8");
  ASSERT_EQ(all.at("ranks").size(), 8u);
  EXPECT_EQ(all.at("ranks")[3].at("experts"), json::parse("[48, 64]"));
  EXPECT_EQ(all.at("ranks")[7].at("heads"), json::parse("[56, 64]"));
  const Outcome text =
      run_program({GAUNTLET_BINARY, "mesh", "--shape", "gpt-oss-20b", "--mesh", "tp2,pp2"});
  EXPECT_EQ(text.code, 0) << text.err;
  EXPECT_THAT(text.out, HasSubstr("gpt-oss-20b on 4 ranks, tp2,pp2"));
  const Outcome wrong =
      run_program({GAUNTLET_BINARY, "mesh", "--shape", "gpt-oss-20b", "--mesh", "ep5"});
  EXPECT_EQ(wrong.code, 2);
  EXPECT_THAT(wrong.err, HasSubstr("ep5 does not divide 32 experts"));
}

class GenerateOnRanks : public testing::Test {
 protected:
  void SetUp() override {
    if (const auto library = ranks::find_mpi_library(); !library) {
      GTEST_SKIP() << library.error().message;
    }
    if (const auto mpirun = ranks::find_mpirun(); !mpirun) GTEST_SKIP() << mpirun.error().message;
  }
  static Words under_mpirun(int ranks, const Words& argv) {
    return ranks::mpirun_command(ranks, argv).value();
  }
};

TEST_F(GenerateOnRanks, prints_the_text_of_one_from_rank_0_alone) {
  const json alone = made(generate({"--format", "json"}));
  for (const Words& options :
       {Words{"--mesh", "tp2", "--rank-sums", "ordered"}, Words{"--mesh", "pp2"}}) {
    Words all = options;
    all.insert(all.end(), {"--format", "json"});
    const Outcome outcome = run_program(under_mpirun(2, generate(all)));
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    EXPECT_EQ(std::ranges::count(outcome.out, '\n'), 1) << outcome.out;
    const json divided = json::parse(outcome.out, nullptr, false);
    EXPECT_EQ(divided.at("output_ids"), alone.at("output_ids"));
    EXPECT_EQ(divided.size(), alone.size());
  }
}

TEST_F(GenerateOnRanks, says_that_another_number_was_started) {
  const Outcome outcome = run_program(under_mpirun(2, generate({"--mesh", "tp4"})));
  EXPECT_NE(outcome.code, 0);
  EXPECT_THAT(outcome.err, HasSubstr("the mesh tp4 has 4 ranks, and 2 were started"));
  EXPECT_EQ(outcome.out, "");
}

/// The process below this one whose environment has the variable with that value.
pid_t find_rank(const std::string& rank) {
  for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
    const std::string name = entry.path().filename();
    if (name.find_first_not_of("0123456789") != std::string::npos) continue;
    const std::string text = read_text(entry.path() / "environ");
    const bool ours = text.find("GAUNTLET_RANKS_TEST=" + std::to_string(getpid())) != text.npos;
    if (ours && text.find("OMPI_COMM_WORLD_RANK=" + rank + '\0') != text.npos) {
      return std::stoi(name);
    }
  }
  return -1;
}

TEST_F(GenerateOnRanks, end_soon_after_one_is_killed_and_name_it) {
  using Clock = std::chrono::steady_clock;
  setenv("GAUNTLET_RANKS_TEST", std::to_string(getpid()).c_str(), 1);
  for (int round = 0; round < 3; ++round) {
    Program job(under_mpirun(2, generate({"--mesh", "tp2", "--ignore-eos"}, "4000")));
    pid_t victim = -1;
    for (int i = 0; i < 1000 && (victim = find_rank("1")) < 0; ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
    ASSERT_GT(victim, 0);
    for (int i = 0; i < 1000 && job.printed().size() < 10; ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(37 * round));
    const auto begin = Clock::now();
    kill(victim, SIGKILL);
    const Outcome outcome = job.wait();
    EXPECT_LT(Clock::now() - begin, std::chrono::seconds(10));
    EXPECT_NE(outcome.code, 0);
    EXPECT_THAT(outcome.out + outcome.err, HasSubstr("rank 1"));
    EXPECT_LT(find_rank("0"), 0) << "rank 0 is still there";
  }
  unsetenv("GAUNTLET_RANKS_TEST");
}

}  // namespace
}  // namespace gauntlet::tests
