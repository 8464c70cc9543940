// Is what programs leave behind read as what it means?
#include "tests/gpu/outcome.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gauntlet::tests::gpu {
namespace {

using testing::HasSubstr;
using testing::SizeIs;

TEST(TargetVerdicts, read_two_sides_and_several) {
  const auto verdicts = target_verdicts(R"({"run_id": "20260101-1", "results": [
    {"id": "ch01:a", "backend": "cuda", "status": "passed", "seconds": 8.5,
     "speedup": {"median": 2.0, "lo": 1.9, "hi": 2.1}},
    {"id": "labs:b", "backend": "cuda", "status": "passed", "comparisons": [
      {"kind": "step", "speedup": {"value": 1.5, "lo": 1, "hi": 2}},
      {"kind": "total", "speedup": {"value": 9.0, "lo": 8.0, "hi": 10.0}},
      {"kind": "yardstick", "speedup": {"value": 0.5, "lo": 0, "hi": 1}}]},
    {"id": "ch01:c", "backend": "cuda", "status": "skipped", "reason": "needs\nsm_100a",
     "speedup": null},
    {"id": "ch01:a", "backend": "cpu", "status": "wrong"}]})");
  ASSERT_TRUE(verdicts) << verdicts.error().message;
  EXPECT_EQ(verdicts->run_id, "20260101-1");
  ASSERT_THAT(verdicts->by_id, SizeIs(3));
  EXPECT_EQ(verdicts->by_id.at("ch01:a").status, "passed");
  EXPECT_EQ(verdicts->by_id.at("ch01:a").speedup, R"({"hi":2.1,"lo":1.9,"value":2.0})");
  EXPECT_EQ(verdicts->by_id.at("ch01:a").seconds, 8.5);
  EXPECT_EQ(verdicts->by_id.at("labs:b").speedup, R"({"hi":10.0,"lo":8.0,"value":9.0})");
  EXPECT_EQ(verdicts->by_id.at("ch01:c").speedup, "");
  EXPECT_EQ(verdicts->by_id.at("ch01:c").reason, "needs sm_100a");
}

TEST(TargetVerdicts, keep_why_a_speedup_may_be_believed) {
  const auto verdicts = target_verdicts(R"({"run_id": "20260101-1", "results": [
    {"id": "ch01:a", "backend": "cuda", "status": "passed", "kind": "comparison",
     "sides": [{"name": "baseline", "ceiling_percent": 11.5},
               {"name": "optimized", "ceiling_percent": 90}],
     "comparisons": [{"kind": "pair", "to": "optimized", "verdict": "gain",
       "speedup": {"value": 2.0, "lo": 1.9, "hi": 2.1},
       "witness": {"name": "loads", "meaning": "loads per run", "source": "counter",
         "collected": true, "before": 8, "after": 1, "moved": true}}]},
    {"id": "ch01:b", "backend": "cuda", "status": "passed", "kind": "demonstration",
     "sides": [{"name": "baseline", "ceiling_percent": 0}],
     "comparisons": [{"kind": "pair", "to": "optimized", "verdict": "gain",
       "witness": {"name": "loads", "collected": false, "before": null}}]}]})");
  ASSERT_TRUE(verdicts) << verdicts.error().message;
  const Verdict& a = verdicts->by_id.at("ch01:a");
  EXPECT_EQ(a.kind, "comparison");
  EXPECT_EQ(a.witnesses, R"([{"after":1,"before":8,"moved":true,"name":"loads","to":"optimized",)"
                         R"("verdict":"gain"}])");
  EXPECT_EQ(a.ceiling_percent, R"({"baseline":11.5,"optimized":90})");
  const Verdict& b = verdicts->by_id.at("ch01:b");
  EXPECT_EQ(b.kind, "demonstration");
  EXPECT_EQ(b.witnesses, "") << "it was not collected";
  EXPECT_EQ(b.ceiling_percent, "");
}

TEST(TargetVerdicts, refuse_what_is_no_run) {
  EXPECT_FALSE(target_verdicts("{}"));
  EXPECT_FALSE(target_verdicts("{\"run_id\": \"cut o"));
}

std::string gtest_json(const std::string& tests) {
  return R"({"tests": 2, "testsuites": [{"name": "AOnGpu", "testsuite": [)" + tests + "]}]}";
}
const std::string kPassed = R"({"name": "x", "status": "RUN", "result": "COMPLETED"})";
const std::string kSkipped =
    R"({"name": "y", "status": "RUN", "result": "SKIPPED", "skipped": [{"message": "no wgmma"}]})";
const std::string kFailed =
    R"({"name": "z", "status": "RUN", "result": "COMPLETED", "failures": [{"failure": "1 is\n2"}]})";

std::string status(const TestEnd& end) {
  const auto verdict = test_verdict(end);
  return verdict ? verdict->status + ": " + verdict->reason : "error: " + verdict.error().message;
}

TEST(TestVerdict, goes_by_the_tests_and_by_how_the_program_ended) {
  EXPECT_EQ(status({.json_text = gtest_json(kPassed + "," + kSkipped)}), "passed: ");
  EXPECT_EQ(status({.json_text = gtest_json(kSkipped)}), "skipped: no wgmma");
  EXPECT_EQ(status({.json_text = gtest_json(kPassed + "," + kFailed), .exit_code = 1}),
            "failed: AOnGpu.z: 1 is 2");
  EXPECT_THAT(status({.json_text = gtest_json(kPassed), .exit_code = 9}),
              HasSubstr("failed: its tests passed, but it ended with exit code 9"));
  EXPECT_THAT(status({.json_text = "", .exit_code = 139}), HasSubstr("crashed: "));
  EXPECT_THAT(status({.json_text = gtest_json(kPassed), .exit_code = 124}),
              HasSubstr("timed_out: "));
}

TEST(TestVerdict, names_files_without_the_folders_of_a_machine) {
  std::string failed = kFailed;
  const std::string said = "1 is";
  failed.replace(failed.find(said), said.size(), "/home/me/tests/here/src/lab/a_test.cc:7 1 is");
  EXPECT_EQ(status({.json_text = gtest_json(failed), .exit_code = 1}),
            "failed: AOnGpu.z: src/lab/a_test.cc:7 1 is 2");
}

TEST(TestVerdict, is_none_when_no_test_ran) {
  EXPECT_THAT(status({.json_text = R"({"tests": 0, "testsuites": []})"}),
              HasSubstr("error: the program has no such tests"));
}

}  // namespace
}  // namespace gauntlet::tests::gpu
