// Does gauntlet analyze keep its promises: a verified study in a folder, that survives being
// killed?
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>
#include <thread>

#include "lab/targets/catalog.h"
#include "study/fidelity/rules.h"
#include "study/ladder.h"
#include "tests/program.h"

namespace gauntlet::tests {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using testing::HasSubstr;
using Words = std::vector<std::string>;

/// A study as short as can be.
Words analyze(const std::string& folder, const Words& more = {}) {
  Words argv = {GAUNTLET_BINARY,    "analyze", "--quick",       "--backend", "cpu",
                "--budget-seconds", "1",       "--no-ceilings", "--output",  folder};
  argv.insert(argv.end(), more.begin(), more.end());
  return argv;
}

std::set<std::string> cells_in(const std::string& folder) {
  std::set<std::string> cells;
  if (!fs::exists(fs::path(folder) / "journal.jsonl")) return cells;
  std::stringstream lines(read_text(fs::path(folder) / "journal.jsonl"));
  for (std::string line; std::getline(lines, line);) {
    const json parsed = json::parse(line, nullptr, false);
    if (parsed.is_object() && parsed.contains("cell")) cells.insert(parsed.at("cell"));
  }
  return cells;
}

/// Kills the study once it has measured a few more cells than `cells`.
void run_and_kill(const Words& argv, const std::string& folder, std::size_t cells) {
  Program program(argv);
  for (int i = 0; i < 3000 && cells_in(folder).size() < cells + 3; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  program.kill_now();
  program.wait();
}

TEST(AnalyzeCommand, verifies_every_layer_though_it_was_killed_twice_on_the_way) {
  const TemporaryFolder folder;
  const std::string study = folder / "study";
  run_and_kill(analyze(study), study, 0);
  const auto first = cells_in(study);
  run_and_kill(analyze(study, {"--resume"}), study, first.size());
  const auto second = cells_in(study);
  EXPECT_TRUE(std::ranges::includes(second, first)) << "what was measured is kept";

  const Outcome outcome = run_program(analyze(study, {"--resume"}));
  ASSERT_EQ(outcome.code, 0) << outcome.err << outcome.out;
  EXPECT_THAT(outcome.out, HasSubstr("report.html"));
  EXPECT_THAT(outcome.out, HasSubstr("All 7 layers are verified"));
  EXPECT_THAT(outcome.err, HasSubstr("gauntlet-tiny on ")) << "says what it does and how long";
  const json results = json::parse(read_text(folder / "study/results.json"));
  for (const json& layer : results.at("layers")) {
    EXPECT_TRUE(layer.at("verification").at("verified").get<bool>()) << layer;
    EXPECT_EQ(layer.contains("gain"), layer.at("index") > 0);
  }
  EXPECT_EQ(results.at("cells").at("measured"), results.at("cells").at("planned"));
  EXPECT_EQ(cells_in(study).size(), results.at("cells").at("planned").get<std::size_t>());
  EXPECT_EQ(results.at("router").at("load").size(), 6u);
  for (const char* name : {"report.md", "report.html"}) {
    EXPECT_GT(fs::file_size(fs::path(study) / name), 1000u);
  }

  const Outcome anew = run_program(analyze(study));
  EXPECT_EQ(anew.code, 2);
  EXPECT_THAT(anew.err, HasSubstr("--resume")) << "a study is not overwritten";
  const Outcome compared = run_program({GAUNTLET_BINARY, "analyze", "--compare", study, study});
  EXPECT_EQ(compared.code, 0) << compared.err;
  EXPECT_THAT(compared.out, HasSubstr("layer 2 memory, decode_1"));
}

TEST(AnalyzeCommand, names_only_targets_that_the_catalogue_has) {
  const lab::Catalog catalog = lab::load_catalog();
  for (const auto backend : {engine::Backend::cpu, engine::Backend::cuda}) {
    for (const study::Option& option : study::ladder_for(backend).options) {
      for (const std::string& target : option.targets) {
        EXPECT_NE(catalog.find(target), nullptr) << option.id << " names " << target;
      }
    }
  }
  for (const auto bottleneck : {study::Bottleneck::memory, study::Bottleneck::compute,
                                study::Bottleneck::launch, study::Bottleneck::host}) {
    for (const std::string& target : study::targets_for(bottleneck)) {
      EXPECT_NE(catalog.find(target), nullptr) << target;
    }
  }
}

TEST(AnalyzeCommand, says_which_field_of_a_compared_study_is_wrong) {
  const TemporaryFolder folder;
  json study = json::parse(read_text(GAUNTLET_SOURCE_DIR "/tests/golden/study-whole.json"));
  const auto write = [&](const std::string& name) {
    fs::create_directories(folder / name);
    std::ofstream(folder / (name + "/results.json")) << study;
  };
  write("sound");
  study["layers"][2]["gain"]["ratio"]["value"] = "fast";
  write("damaged");
  const auto compare = [&](const std::string& with) {
    return run_program({GAUNTLET_BINARY, "analyze", "--compare", folder / "sound", folder / with});
  };
  EXPECT_EQ(compare("sound").code, 0);
  const Outcome refused = compare("damaged");
  EXPECT_EQ(refused.code, 2);
  EXPECT_THAT(refused.err,
              HasSubstr("damaged/results.json: layers[2].gain.ratio.value is no number"));
  EXPECT_EQ(std::ranges::count(refused.err, '\n'), 1) << refused.err;
}

TEST(AnalyzeCommand, refuses_to_resume_what_is_not_there) {
  const TemporaryFolder folder;
  const Outcome outcome = run_program(analyze(folder / "none", {"--resume"}));
  EXPECT_EQ(outcome.code, 2);
  EXPECT_THAT(outcome.err, HasSubstr("no study to resume"));
}

}  // namespace
}  // namespace gauntlet::tests
