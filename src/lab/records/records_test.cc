#include "lab/records/records.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <regex>
#include <thread>

#include "core/os/fake_tree.h"
#include "core/os/files.h"

namespace gauntlet::lab::inline records {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;
using testing::StartsWith;

RunRecord record_of(const std::string& run_id, std::vector<std::string> ids = {"ch07:a"}) {
  RunRecord record{.run_id = run_id, .started_at = 1000, .command_line = "gauntlet run"};
  for (const std::string& id : ids) record.results.push_back({.id = id, .status = Status::skipped});
  return record;
}

class Records : public testing::Test {
 protected:
  std::string artifacts() const { return (folder_.root() / "artifacts").string(); }
  RunFolder create(const std::string& run_id) {
    const auto folder = RunFolder::create(artifacts(), run_id);
    EXPECT_TRUE(folder) << (folder ? "" : folder.error().message);
    return *folder;
  }
  void make_run(const std::string& run_id) { ASSERT_TRUE(create(run_id).save(record_of(run_id))); }
  std::string found(const std::string& name) const {
    const auto folder = RunFolder::find(artifacts(), name);
    return folder ? folder->run_id() : folder.error().message;
  }
  FakeTree folder_;
};

TEST(MakeRunId, sorts_by_time_also_within_a_second) {
  const auto at = [](std::int64_t ms) {
    return std::chrono::system_clock::time_point(std::chrono::milliseconds(ms));
  };
  const std::string id = make_run_id(at(1700000000'123));
  EXPECT_TRUE(std::regex_match(id, std::regex("20231114-221320-[0-9a-f]+"))) << id;
  EXPECT_LT(id, make_run_id(at(1700000000'250)));
  EXPECT_LT(id, make_run_id(at(1700000001'000)));
}

TEST_F(Records, makes_the_folders_of_a_run) {
  const RunFolder folder = create("r1");
  EXPECT_EQ(folder.run_id(), "r1");
  EXPECT_TRUE(fs::path(folder.path()).is_absolute());
  EXPECT_TRUE(fs::is_directory(artifacts() + "/r1/logs"));
  EXPECT_TRUE(fs::is_directory(artifacts() + "/r1/profiles"));
}

TEST_F(Records, says_which_option_to_use_when_the_folder_cannot_be_written) {
  folder_.write("artifacts", "a file in the way");
  const auto refused = RunFolder::create(artifacts(), "r1");
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().kind, ErrorKind::wrong_use);
  EXPECT_THAT(refused.error().message, HasSubstr("--artifacts-dir"));
  const auto nowhere = RunFolder::create("/proc/gauntlet", "r1");
  ASSERT_FALSE(nowhere);
}

TEST_F(Records, reads_back_what_was_saved) {
  const RunFolder folder = create("r1");
  ASSERT_TRUE(folder.save(record_of("r1", {"ch07:a", "ch07:b"})));
  const auto record = folder.load();
  ASSERT_TRUE(record) << record.error().message;
  EXPECT_EQ(record->run_id, "r1");
  ASSERT_EQ(record->results.size(), 2u);
  EXPECT_EQ(record->results[1].id, "ch07:b");
}

TEST_F(Records, of_version_1_are_read_and_go_on_as_version_2) {
  const RunFolder folder = create("r1");
  folder_.write("artifacts/r1/results.json", R"({
    "schema_version": 1, "run_id": "r1", "arguments": ["run", "--targets", "ch07"],
    "machine": {}, "build": {}, "ceilings": [], "results": [
      {"id": "ch07:a", "backend": "cpu", "status": "passed", "knobs": {"n": 8},
       "speedup": {"median": 2, "lo": 1.9, "hi": 2.1},
       "baseline": {"median_ns": 200}, "optimized": {"median_ns": 100}},
      {"id": "ch07:b", "backend": "cpu", "status": "skipped", "speedup": null}]})");
  auto record = folder.load();
  ASSERT_TRUE(record) << record.error().message;
  EXPECT_EQ(record->arguments.size(), 3u) << "a run is resumed by its arguments";
  EXPECT_EQ(record->results[0].headline().speedup.value, 2);
  EXPECT_EQ(record->results[0].best().ns.value, 100);
  record->results.push_back({.id = "ch07:c", .status = Status::skipped});
  ASSERT_TRUE(folder.save(*record));
  ASSERT_TRUE(folder.save_reports(*record));
  const auto again = folder.load();
  ASSERT_TRUE(again) << again.error().message;
  ASSERT_EQ(again->results.size(), 3u);
  EXPECT_EQ(again->results[0].headline().speedup.lo, 1.9);
  EXPECT_THAT(*read_file(folder.path() + "/results.json"), HasSubstr("\"schema_version\": 2"));
}

TEST_F(Records, writes_a_manifest_without_the_results) {
  ASSERT_TRUE(create("r1").save(record_of("r1")));
  const auto manifest = nlohmann::json::parse(*read_file(artifacts() + "/r1/manifest.json"));
  EXPECT_EQ(manifest.at("run_id"), "r1");
  EXPECT_TRUE(manifest.contains("machine"));
  EXPECT_TRUE(manifest.contains("build"));
  EXPECT_FALSE(manifest.contains("results"));
}

TEST_F(Records, saves_a_reason_that_is_not_utf8) {
  RunRecord record = record_of("r1");
  record.results[0].reason = "crashed saying \xFF\xFE";
  const RunFolder folder = create("r1");
  ASSERT_TRUE(folder.save(record));
  EXPECT_THAT(folder.load()->results[0].reason, StartsWith("crashed saying "));
}

TEST_F(Records, writes_both_reports) {
  const RunFolder folder = create("r1");
  ASSERT_TRUE(folder.save_reports(record_of("r1")));
  EXPECT_THAT(*read_file(folder.path() + "/report.md"), HasSubstr("ch07:a"));
  EXPECT_THAT(*read_file(folder.path() + "/report.html"), HasSubstr("ch07:a"));
}

TEST_F(Records, finds_the_latest_the_previous_and_one_by_id) {
  make_run("20260101-000000-aaaa");
  make_run("20260301-000000-bbbb");
  make_run("20260201-000000-cccc");
  EXPECT_EQ(found("latest"), "20260301-000000-bbbb");
  EXPECT_EQ(found("previous"), "20260201-000000-cccc");
  EXPECT_EQ(found("20260101-000000-aaaa"), "20260101-000000-aaaa");
}

TEST_F(Records, finds_a_run_by_path_whatever_its_end) {
  make_run("r1");
  for (const char* end : {"", "/", "//"}) {
    const auto folder = RunFolder::find("/elsewhere", artifacts() + "/r1" + end);
    ASSERT_TRUE(folder);
    EXPECT_EQ(folder->run_id(), "r1");
    EXPECT_TRUE(folder->load());
  }
}

TEST_F(Records, does_not_take_a_run_without_results_for_one) {
  make_run("20260101-000000-aaaa");
  create("20260301-000000-bbbb");
  EXPECT_EQ(found("latest"), "20260101-000000-aaaa");
  EXPECT_THAT(found("20260301-000000-bbbb"), StartsWith("there is no run"));
}

TEST_F(Records, suggests_the_nearest_name_or_the_latest) {
  make_run("20260101-000000-aaaa");
  make_run("20260301-000000-bbbb");
  EXPECT_THAT(found("20260101-000000-aaab"), HasSubstr("did you mean '20260101-000000-aaaa'"));
  EXPECT_THAT(found("nightly"), HasSubstr("the latest is '20260301-000000-bbbb'"));
}

TEST_F(Records, says_so_when_there_are_no_runs) {
  EXPECT_THAT(found("latest"), StartsWith("there are no runs below"));
  make_run("r1");
  EXPECT_THAT(found("previous"), StartsWith("there is no run 'previous'"));
}

TEST_F(Records, refuses_a_name_too_long_for_a_file) {
  make_run("r1");
  EXPECT_THAT(found(std::string(5000, 'x')), StartsWith("there is no run"));
}

TEST_F(Records, refuses_results_that_are_broken) {
  make_run("r1");
  folder_.write("artifacts/r1/results.json", "{\"run_id\": ");
  const auto broken = RunFolder::find(artifacts(), "r1")->load();
  ASSERT_FALSE(broken);
  EXPECT_THAT(broken.error().message, HasSubstr("results.json is not valid JSON"));
  folder_.write("artifacts/r1/results.json", "{}");
  EXPECT_FALSE(RunFolder::find(artifacts(), "r1")->load());
}

TEST_F(Records, stay_valid_when_the_run_is_killed_while_it_writes) {
  const RunFolder folder = create("r1");
  ASSERT_TRUE(folder.save(record_of("r1", {"first"})));
  for (int round = 0; round < 5; ++round) {
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      std::vector<std::string> ids;
      for (;;) {
        ids.push_back("ch07:target_" + std::to_string(ids.size()));
        if (!folder.save(record_of("r1", ids))) _exit(1);
      }
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(10 + 7 * round));
    kill(child, SIGKILL);
    int status = 0;
    waitpid(child, &status, 0);
    ASSERT_TRUE(WIFSIGNALED(status));
    const auto record = folder.load();
    ASSERT_TRUE(record) << record.error().message;
    EXPECT_FALSE(record->results.empty());
    EXPECT_FALSE(nlohmann::json::parse(*read_file(folder.path() + "/manifest.json"), nullptr, false)
                     .is_discarded());
  }
}

}  // namespace
}  // namespace gauntlet::lab::inline records
