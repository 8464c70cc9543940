// Are two studies held against each other by their intervals, whichever version wrote them?
#include "study/results/compare.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "core/os/fake_tree.h"
#include "study/results/assemble.h"
#include "study/results/sample_study.h"
#include "study/study.h"

namespace gauntlet::study {
namespace {

using nlohmann::json;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

struct Comparison : testing::Test {
  FakeTree tree;
  StudyResults study = sample();

  StudyResults sample() const {
    SampleStudy made;
    Journal journal = Journal::begin(tree.root() / "journal.jsonl", {}, 1794709000).value();
    made.fill(journal);
    return assemble(made.facts, journal).value();
  }
};

TEST_F(Comparison, judges_figures_by_their_intervals) {
  StudyResults faster = study;
  for (Figure& figure : faster.layers[2].engine->figures) figure.tok_s = figure.tok_s.times(1.5);
  int higher = 0;
  for (const auto& difference : compare_studies(study, faster)) {
    const bool raised = difference.figure.starts_with("layer 2") && difference.unit == "tok/s";
    EXPECT_EQ(difference.change, raised ? stats::Change::higher : stats::Change::same)
        << difference.figure;
    higher += raised;
  }
  EXPECT_EQ(higher, 4);
}

TEST_F(Comparison, names_what_differs_in_subject) {
  StudyResults other = study;
  EXPECT_THAT(different_subjects(study, other), IsEmpty());
  other.run.build.commit = "def456";
  EXPECT_THAT(different_subjects(study, other), ElementsAre("commit: \"abc123\" and \"def456\""));
  other.run.machine.cpu.cores = 64;
  other.run.machine.gpus = {{.name = "Sample GPU", .uuid = "GPU-1"}};
  other.depth = Depth::full;
  EXPECT_THAT(different_subjects(study, other),
              ElementsAre("cores: 2 and 64", "GPUs: \"none\" and \"Sample GPU (GPU-1)\"",
                          "commit: \"abc123\" and \"def456\"", "depth: \"quick\" and \"full\""));
}

/// As the first files of version 1 had it.
json first_version(const StudyResults& results) {
  std::string text = to_json(results).dump();
  for (std::size_t at = 0; (at = text.find("\"value\":", at)) != std::string::npos;) {
    text.replace(at, 8, "\"median\":");
  }
  json old = json::parse(text);
  old["schema_version"] = 1;
  for (const char* key : {"left_out", "seconds"}) old["cells"].erase(key);
  for (json& layer : old["layers"]) {
    layer.erase("energy");
    if (layer.contains("gain")) layer["gain"].erase("conditions");
    if (!layer.contains("serving")) continue;
    for (const char* side : {"before", "after"}) layer["serving"][side].erase("answer_ms");
  }
  for (json& entry : old["leave_one_out"]) {
    entry["agrees"] = true;
    entry.erase("sign");
  }
  return old;
}

TEST_F(Comparison, reads_files_of_version_1) {
  const json old = first_version(study);
  ASSERT_TRUE(old.at("layers")[1].at("gain").at("ratio").contains("median"));
  tree.write("old/results.json", old.dump());
  const auto read = load_results(tree.root() / "old");
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(to_json(*read).at("schema_version"), kStudySchemaVersion);
  const auto differences = compare_studies(*read, study);
  EXPECT_EQ(differences.size(), compare_studies(study, study).size());
  for (const auto& difference : differences) {
    EXPECT_EQ(difference.ratio.value, 1) << difference.figure;
    EXPECT_EQ(difference.change, stats::Change::same) << difference.figure;
  }
}

TEST_F(Comparison, refuses_files_of_later_versions_and_of_something_else) {
  for (const char* text : {R"({"study_id": "x", "schema_version": 3})", R"({"schema_version": 2})",
                           R"({"study_id": "x", "schema_version": "2"})", "[]", "not JSON"}) {
    tree.write("other/results.json", text);
    const auto read = load_results(tree.root() / "other");
    ASSERT_FALSE(read) << text;
    EXPECT_THAT(read.error().message, HasSubstr("other/results.json: "));
    EXPECT_EQ(read.error().kind, ErrorKind::wrong_use);
  }
}

}  // namespace
}  // namespace gauntlet::study
