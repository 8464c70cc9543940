#include "lab/records/store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "core/fake_tree.h"

namespace gauntlet::lab::inline records {
namespace {

using testing::HasSubstr;

Result result_of(const std::string& id, double speedup, Status status = Status::passed) {
  return {.id = id,
          .status = status,
          .speedup = Estimate{.median = speedup, .lo = speedup - 0.1, .hi = speedup + 0.1},
          .baseline = SideResult{.ns = {.median = 100 * speedup}},
          .optimized = SideResult{.ns = {.median = 100}}};
}

RunRecord run_of(const std::string& run_id, std::int64_t started_at, std::vector<Result> results) {
  RunRecord record{.run_id = run_id,
                   .started_at = started_at,
                   .command_line = "gauntlet run",
                   .results = std::move(results)};
  record.machine.cpu = {.model = "AMD EPYC", .cores = 2};
  record.build.commit = "abc-" + run_id;
  return record;
}

class RunStoreTest : public testing::Test {
 protected:
  RunStoreTest() : store_(*RunStore::open(folder_.root().string())) {}

  void put(const RunRecord& record) {
    const auto done = store_.put(record);
    ASSERT_TRUE(done) << done.error().message;
  }
  std::vector<std::string> history(const std::string& glob, const std::string& backend = "",
                                   int limit = 100) {
    std::vector<std::string> result;
    const auto rows = store_.history(glob, backend, limit);
    for (const StoredResult& row : *rows) {
      result.push_back(row.run_id + " " + row.id + " " + row.backend);
    }
    return result;
  }
  using Rows = std::vector<std::string>;

  FakeTree folder_;
  RunStore store_;
};

TEST_F(RunStoreTest, is_empty_at_first) {
  EXPECT_TRUE(store_.runs(10)->empty());
  EXPECT_TRUE(store_.history("*", "", 10)->empty());
}

TEST_F(RunStoreTest, keeps_what_a_run_found) {
  put(run_of("r1", 1000,
             {result_of("ch07:a", 2),
              result_of("ch07:b", 0.5, Status::regressed),
              {.id = "ch07:c", .status = Status::skipped}}));
  const std::vector<StoredRun> runs = *store_.runs(10);
  ASSERT_EQ(runs.size(), 1u);
  EXPECT_EQ(runs[0].run_id, "r1");
  EXPECT_EQ(runs[0].started_at, 1000);
  EXPECT_EQ(runs[0].machine, "amd-epyc-2c");
  EXPECT_EQ(runs[0].commit, "abc-r1");
  EXPECT_EQ(runs[0].command_line, "gauntlet run");
  EXPECT_EQ(runs[0].targets, 3);
  EXPECT_EQ(runs[0].failures, 1);
  const StoredResult row = store_.history("ch07:a", "", 10)->at(0);
  EXPECT_EQ(row.status, "passed");
  EXPECT_EQ(row.commit, "abc-r1");
  EXPECT_EQ(row.speedup.median, 2);
  EXPECT_EQ(row.speedup.lo, 1.9);
  EXPECT_EQ(row.speedup.hi, 2.1);
  EXPECT_EQ(row.baseline_ns, 200);
  EXPECT_EQ(row.optimized_ns, 100);
}

TEST_F(RunStoreTest, counts_as_failures_what_makes_a_run_fail) {
  std::vector<Result> results;
  int failures = 0;
  for (Status status : {Status::passed, Status::no_gain, Status::regressed, Status::wrong,
                        Status::crashed, Status::timed_out, Status::skipped}) {
    results.push_back({.id = name_of(status), .status = status});
    failures += is_failure(status);
  }
  put(run_of("r1", 1, results));
  EXPECT_EQ(store_.runs(1)->at(0).failures, failures);
}

TEST_F(RunStoreTest, replaces_a_run_that_is_put_again) {
  put(run_of("r1", 1000, {result_of("ch07:a", 2), result_of("ch07:b", 3)}));
  put(run_of("r1", 1000, {result_of("ch07:a", 4)}));
  EXPECT_EQ(store_.runs(10)->size(), 1u);
  EXPECT_EQ(store_.runs(10)->at(0).targets, 1);
  ASSERT_EQ(history("*"), (Rows{"r1 ch07:a cpu"}));
  EXPECT_EQ(store_.history("ch07:a", "", 1)->at(0).speedup.median, 4);
}

TEST_F(RunStoreTest, gives_the_newest_first) {
  put(run_of("r2", 2000, {result_of("ch07:a", 2)}));
  put(run_of("r3", 3000, {result_of("ch07:a", 3)}));
  put(run_of("r1", 1000, {result_of("ch07:a", 1)}));
  EXPECT_EQ(store_.runs(2)->at(0).run_id, "r3");
  EXPECT_EQ(store_.runs(2)->at(1).run_id, "r2");
  EXPECT_EQ(store_.runs(2)->size(), 2u);
  EXPECT_EQ(history("ch07:a"), (Rows{"r3 ch07:a cpu", "r2 ch07:a cpu", "r1 ch07:a cpu"}));
  EXPECT_EQ(history("ch07:a", "", 2), (Rows{"r3 ch07:a cpu", "r2 ch07:a cpu"}));
}

TEST_F(RunStoreTest, orders_runs_of_the_same_second_by_their_id) {
  put(run_of("r1", 1000, {result_of("ch07:a", 1)}));
  put(run_of("r3", 1000, {result_of("ch07:a", 3)}));
  put(run_of("r2", 1000, {result_of("ch07:a", 2)}));
  EXPECT_EQ(history("ch07:a"), (Rows{"r3 ch07:a cpu", "r2 ch07:a cpu", "r1 ch07:a cpu"}));
  EXPECT_EQ(store_.runs(1)->at(0).run_id, "r3");
}

TEST_F(RunStoreTest, finds_by_glob_and_backend_and_leaves_sweeps_out) {
  Result gpu = result_of("ch07:a", 9);
  gpu.backend = BackendKind::cuda;
  Result swept = result_of("ch07:a", 5);
  swept.sweep_key = "n";
  swept.knobs = {{"n", 64}};
  put(run_of("r1", 1, {result_of("ch07:a", 2), gpu, swept, result_of("ch08:a", 2)}));
  EXPECT_EQ(history("ch07:*"), (Rows{"r1 ch07:a cpu", "r1 ch07:a cuda"}));
  EXPECT_EQ(history("*", "cuda"), (Rows{"r1 ch07:a cuda"}));
  EXPECT_EQ(history("*:a", "cpu"), (Rows{"r1 ch07:a cpu", "r1 ch08:a cpu"}));
  EXPECT_EQ(history("ch07"), Rows{});
}

TEST_F(RunStoreTest, takes_quotes_for_text) {
  RunRecord record = run_of("r'1", 1, {result_of("x'); drop table runs; --", 2)});
  record.command_line = "gauntlet run --targets 'a\"b'";
  put(record);
  EXPECT_EQ(store_.runs(1)->at(0).command_line, record.command_line);
  EXPECT_EQ(history("x'*").size(), 1u);
}

TEST_F(RunStoreTest, is_still_there_when_opened_again) {
  put(run_of("r1", 1000, {result_of("ch07:a", 2)}));
  const auto again = RunStore::open(folder_.root().string());
  ASSERT_TRUE(again);
  EXPECT_EQ(again->runs(10)->size(), 1u);
}

TEST_F(RunStoreTest, keeps_numbers_that_are_not_finite_from_spoiling_a_run) {
  put(run_of("r1", 1, {result_of("ch07:a", std::nan(""))}));
  EXPECT_EQ(history("ch07:a").size(), 1u);
}

TEST(RunStoreOpen, says_where_it_failed) {
  const auto missing = RunStore::open("/no/such/folder");
  ASSERT_FALSE(missing);
  EXPECT_THAT(missing.error().message, HasSubstr("/no/such/folder/runs.db"));
  FakeTree folder;
  folder.write("runs.db", std::string(4096, 'x'));
  const auto broken = RunStore::open(folder.root().string());
  ASSERT_FALSE(broken);
  EXPECT_THAT(broken.error().message, HasSubstr("runs.db cannot be used"));
}

}  // namespace
}  // namespace gauntlet::lab::inline records
