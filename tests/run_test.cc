// Does a run keep its promises from start to store: its JSON, sweeps, resuming, expectations,
// comparing?
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <thread>

#include "tests/program.h"

namespace gauntlet::tests {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using testing::HasSubstr;

using Words = std::vector<std::string>;

// A measurement of a fraction of a second; what it finds does not matter here.
const Words kQuickRun = {"run",          "--targets", "ch07:coalesced_copy",
                         "--backend",    "cpu",       "--set",
                         "columns=256",  "--repeat",  "1",
                         "--iterations", "4",         "--no-ceilings",
                         "--format",     "json"};

/// One artifacts folder and one of expectations, with the binary's commands over them.
struct Lab {
  TemporaryFolder folder;
  std::string artifacts = folder / "runs";
  std::string expectations = folder / "expected";

  Outcome operator()(Words arguments, const Words& more = {}) const {
    arguments.insert(arguments.begin(), GAUNTLET_BINARY);
    arguments.insert(arguments.end(), more.begin(), more.end());
    return run_program(arguments, folder.path());
  }
  Outcome run(const Words& more) const {
    Words arguments = kQuickRun;
    for (const std::string& word : {std::string("--artifacts-dir"), artifacts,
                                    std::string("--expectations-dir"), expectations}) {
      arguments.push_back(word);
    }
    return (*this)(arguments, more);
  }
  json run_json(const Words& more, int code = 0) const {
    const Outcome outcome = run(more);
    EXPECT_EQ(outcome.code, code) << outcome.out << outcome.err;
    return json::parse(outcome.out, nullptr, false);
  }
  json query(Words arguments) const {
    const Outcome outcome = (*this)(arguments, {"--artifacts-dir", artifacts, "--format", "json"});
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    return json::parse(outcome.out, nullptr, false);
  }
};

const Words kSmall = {"--set", "rows=256"};

TEST(Run, answers_with_the_keys_that_scripts_rely_on) {
  const Lab lab;
  const json run = lab.run_json(kSmall);
  ASSERT_TRUE(run.is_object());
  ASSERT_EQ(run.at("results").size(), 1u);
  EXPECT_TRUE(run.at("machine").contains("cpu"));
  const json& result = run.at("results")[0];
  for (const char* key :
       {"id",      "backend",      "kind",     "chapter",     "technique", "title",
        "claim",   "goal",         "knobs",    "sweep_key",   "status",    "reason",
        "notes",   "log",          "sides",    "comparisons", "intensity", "bound_by",
        "metrics", "verification", "counters", "conditions",  "seconds"}) {
    EXPECT_TRUE(result.contains(key)) << key;
  }
  EXPECT_EQ(result.at("knobs"), json({{"rows", 256}, {"columns", 256}}));
  ASSERT_EQ(result.at("comparisons").size(), 1u);
  const json& comparison = result.at("comparisons")[0];
  EXPECT_EQ(comparison.at("kind"), "pair");
  EXPECT_GT(comparison.at("speedup").at("hi"), comparison.at("speedup").at("lo"));
  EXPECT_TRUE(comparison.at("witness").contains("collected"));
  ASSERT_EQ(result.at("sides").size(), 2u);
  EXPECT_EQ(result.at("sides")[0].at("name"), "baseline");
  EXPECT_GT(result.at("sides")[0].at("ns").at("value"), 0);
  EXPECT_GT(result.at("verification").at("checks"), 0);

  const fs::path folder = fs::path(lab.artifacts) / run.at("run_id").get<std::string>();
  for (const char* file : {"manifest.json", "results.json", "report.md", "report.html"}) {
    EXPECT_TRUE(fs::exists(folder / file)) << file;
  }
  EXPECT_TRUE(fs::exists(folder / result.at("log").get<std::string>()));
}

TEST(Run, gives_one_result_per_value_of_a_sweep) {
  const json run = Lab().run_json({"--sweep", "rows=256,512,1024"});
  ASSERT_EQ(run.at("results").size(), 3u);
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(run.at("results")[i].at("sweep_key"), "rows");
    EXPECT_EQ(run.at("results")[i].at("knobs").at("rows"), 256 << i);
  }
}

json results_in(const fs::path& folder) {
  const json record = json::parse(read_text(folder / "results.json"), nullptr, false);
  return record.is_object() ? record.at("results") : json::array();
}

TEST(Run, goes_on_after_being_killed_and_repeats_nothing) {
  const Lab lab;
  Words arguments = kQuickRun;
  arguments.insert(arguments.begin(), GAUNTLET_BINARY);
  for (const std::string& word :
       {std::string("--artifacts-dir"), lab.artifacts, std::string("--sweep"),
        std::string("rows=256,512,768,1024,1280")}) {
    arguments.push_back(word);
  }
  Program program(arguments, lab.folder.path());
  fs::path folder;
  json finished = json::array();
  const auto begin = std::chrono::steady_clock::now();
  while (finished.empty() && std::chrono::steady_clock::now() - begin < std::chrono::seconds(30)) {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    std::error_code ignored;
    for (const auto& entry : fs::directory_iterator(lab.artifacts, ignored)) folder = entry.path();
    if (!folder.empty()) finished = results_in(folder);
  }
  program.kill_now();
  EXPECT_EQ(program.wait().code, -9);
  finished = results_in(folder);
  ASSERT_GE(finished.size(), 1u);
  ASSERT_LT(finished.size(), 5u) << "the run was over before it could be killed";

  const Outcome resumed = lab({"run", "--resume", folder.filename().string()},
                              {"--artifacts-dir", lab.artifacts, "--format", "json"});
  EXPECT_EQ(resumed.code, 0) << resumed.err;
  const json results = json::parse(resumed.out, nullptr, false).at("results");
  ASSERT_EQ(results.size(), 5u);
  for (std::size_t i = 0; i < finished.size(); ++i) {
    EXPECT_EQ(results[i], finished[i]) << "a finished target was measured again";
  }
  EXPECT_EQ(results[4].at("knobs").at("rows"), 1280);
  EXPECT_TRUE(fs::exists(folder / "report.html"));
}

std::string only_file(const std::string& folder) {
  std::string found;
  for (const auto& entry : fs::directory_iterator(folder)) found = entry.path();
  return found;
}

TEST(Expectations, are_recorded_then_checked_then_accepted) {
  const Lab lab;
  lab.run_json({"--set", "rows=256", "--update-expectations"});
  const std::string path = only_file(lab.expectations);
  json file = json::parse(read_text(path));
  const json::json_pointer where("/expectations/ch07:coalesced_copy cpu/boards/0/ratios/0");
  json& ratio = file.at(where);
  const double recorded = ratio.at("value");
  EXPECT_GT(recorded, 0);

  // Out of reach of any interval: of two processes that differ threefold, it spans a millionfold.
  ratio["value"] = 1e30 * recorded;
  std::ofstream(path) << file;
  const json regressed = lab.run_json(kSmall, 1);
  EXPECT_EQ(regressed.at("results")[0].at("status"), "regressed");
  EXPECT_THAT(regressed.at("results")[0].at("reason").get<std::string>(),
              HasSubstr("fell below the expected"));
  EXPECT_EQ(json::parse(read_text(path)), file) << "a check must not change what is expected";

  const json accepted = lab.run_json({"--set", "rows=256", "--accept-regressions"});
  EXPECT_NE(accepted.at("results")[0].at("status"), "regressed");
  EXPECT_THAT(accepted.at("results")[0].at("notes").dump(), HasSubstr("accepted: "));
  const json after = json::parse(read_text(path));
  EXPECT_LT(after.at(where).at("value"), 1e20 * recorded);

  const json other_size = lab.run_json({"--set", "rows=512"});
  EXPECT_NE(other_size.at("results")[0].at("status"), "regressed")
      << "an expectation holds for its own sizes only";
}

TEST(Expectations, that_cannot_be_read_are_not_passed_over_in_silence) {
  const Lab lab;
  lab.run_json({"--set", "rows=256", "--update-expectations"});
  std::ofstream(only_file(lab.expectations)) << "{}";
  const Outcome outcome = lab.run(kSmall);
  EXPECT_THAT(outcome.err, HasSubstr("is not a file of expectations"));
}

TEST(Runs, can_be_compared_listed_reported_and_imported) {
  const Lab lab;
  const std::string a = lab.run_json(kSmall).at("run_id");
  const std::string b = lab.run_json(kSmall).at("run_id");

  const json compared = lab.query({"compare", a, b});
  EXPECT_EQ(compared.at("a"), a);
  EXPECT_EQ(compared.at("b"), b);
  ASSERT_EQ(compared.at("differences").size(), 1u);
  EXPECT_EQ(compared.at("differences")[0].at("id"), "ch07:coalesced_copy");
  EXPECT_TRUE(compared.at("differences")[0].contains("verdict"));
  EXPECT_EQ(lab.query({"compare"}), compared) << "previous and latest are the defaults";

  const json runs = lab.query({"history"});
  ASSERT_EQ(runs.size(), 2u);
  EXPECT_EQ(runs[0].at("run_id"), b) << "newest first";
  const json trend = lab.query({"history", "ch07:coalesced_copy"});
  ASSERT_EQ(trend.size(), 2u);
  ASSERT_EQ(trend[0].at("comparisons").size(), 1u);
  EXPECT_TRUE(trend[0].at("comparisons")[0].at("headline"));
  EXPECT_GT(trend[0].at("comparisons")[0].at("from_ns"), 0);

  fs::remove(fs::path(lab.artifacts) / b / "report.html");
  const json report = lab.query({"report", b});
  EXPECT_THAT(read_text(report.at("html").get<std::string>()), HasSubstr("ch07:coalesced_copy"));
  EXPECT_THAT(read_text(report.at("markdown").get<std::string>()),
              HasSubstr("ch07:coalesced_copy"));

  const Outcome imported = lab(
      {"expectations", "--expectations-dir", lab.expectations, "import", lab.artifacts + "/" + a});
  EXPECT_EQ(imported.code, 0) << imported.err;
  const Outcome shown =
      lab({"expectations", "--expectations-dir", lab.expectations, "--format", "json"});
  const json expected = json::parse(shown.out, nullptr, false);
  ASSERT_EQ(expected.size(), 1u);
  EXPECT_EQ(expected[0].at("target"), "ch07:coalesced_copy cpu");
  ASSERT_EQ(expected[0].at("boards").size(), 1u);
  EXPECT_EQ(expected[0].at("boards")[0].at("run_id"), a);
  EXPECT_EQ(expected[0].at("ratios").size(), 1u);
}

}  // namespace
}  // namespace gauntlet::tests
