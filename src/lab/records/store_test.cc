#include "lab/records/store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sqlite3.h>

#include <cmath>

#include "core/os/fake_tree.h"
#include "lab/records/fake_results.h"

namespace gauntlet::lab::inline records {
namespace {

using testing::HasSubstr;

Result result_of(const std::string& id, double speedup, Status status = Status::passed) {
  return pair_result(id, {speedup, speedup - 0.1, speedup + 0.1}, status);
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
  ASSERT_EQ(row.comparisons.size(), 1u);
  const StoredComparison* headline = row.headline();
  ASSERT_NE(headline, nullptr);
  EXPECT_EQ(headline->kind, "pair");
  EXPECT_EQ(headline->from, "baseline");
  EXPECT_EQ(headline->to, "optimized");
  EXPECT_EQ(headline->verdict, "gain");
  EXPECT_EQ(headline->speedup.value, 2);
  EXPECT_EQ(headline->speedup.lo, 1.9);
  EXPECT_EQ(headline->speedup.hi, 2.1);
  EXPECT_EQ(headline->from_ns, 200);
  EXPECT_EQ(headline->to_ns, 100);
  EXPECT_EQ(store_.history("ch07:c", "", 10)->at(0).headline(), nullptr);
}

TEST_F(RunStoreTest, keeps_every_comparison_of_a_ladder_in_order) {
  put(run_of("r1", 1000, {ladder_result("labs:gemm"), result_of("ch07:a", 2)}));
  put(run_of("r2", 2000, {ladder_result("labs:gemm")}));
  const auto rows = *store_.history("labs:*", "", 10);
  ASSERT_EQ(rows.size(), 2u) << "the limit counts results, not comparisons";
  EXPECT_EQ(rows[0].run_id, "r2");
  std::vector<std::string> compared;
  for (const StoredComparison& c : rows[1].comparisons) {
    compared.push_back(c.kind + " " + c.from + " " + c.to);
  }
  EXPECT_EQ(compared, (Rows{"step naive tiled", "step tiled async", "total naive async",
                            "yardstick library async"}));
  EXPECT_EQ(rows[1].headline()->kind, "total");
  EXPECT_EQ(rows[1].headline()->from_ns, 1200);
  EXPECT_EQ(rows[1].comparisons[3].from_ns, 150);
  EXPECT_EQ(rows[1].comparisons[3].verdict, "loss");
  EXPECT_EQ(store_.history("labs:*", "", 1)->at(0).comparisons.size(), 4u);
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
  EXPECT_EQ(store_.history("ch07:a", "", 1)->at(0).headline()->speedup.value, 4);
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

TEST_F(RunStoreTest, keeps_ranks_apart_and_the_gain_of_another_goal_than_speed) {
  const auto with = [](const char* transport, double gain) {
    Result result = result_of("ch04:all_reduce", 2);
    result.backend = BackendKind::ranks;
    result.ranks = {.count = 2, .transport = transport};
    result.goal_metric = "p99_ms";
    result.comparisons[0].gain = around(gain, 0.1);
    return result;
  };
  put(run_of("r1", 1000, {with(kMpi, 3)}));
  put(run_of("r2", 2000, {with(kThreads, 2)}));
  put(run_of("r3", 3000, {with(kMpi, 4)}));
  const auto rows = *store_.history("*", "ranks", 10);
  Rows seen;
  for (const StoredResult& row : rows) seen.push_back(row.run_id + " " + row.on());
  EXPECT_EQ(seen, (Rows{"r3 2 ranks (mpi)", "r1 2 ranks (mpi)", "r2 2 ranks (threads)"}))
      << "trends of two transports follow one another";
  EXPECT_EQ(rows[0].goal_metric, "p99_ms");
  EXPECT_EQ(rows[0].headline()->gain.value, 4);
  EXPECT_DOUBLE_EQ(rows[0].headline()->gain.hi, 4.4);
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
  ASSERT_EQ(history("ch07:a").size(), 1u);
  const StoredResult row = store_.history("ch07:a", "", 1)->at(0);
  EXPECT_TRUE(std::isnan(row.headline()->speedup.value));
}

/// A store as version 1 made it: its own schema, and rows as it wrote them.
void write_store_v1(const FakeTree& folder) {
  sqlite3* db = nullptr;
  ASSERT_EQ(sqlite3_open((folder.root() / "runs.db").c_str(), &db), SQLITE_OK);
  const char* sql = R"(
create table if not exists runs(
  run_id text primary key, started_at integer, machine text, commit_id text, command_line text);
create table if not exists results(
  run_id text references runs(run_id) on delete cascade, id text, backend text, sweep text,
  status text, speedup real, speedup_lo real, speedup_hi real, baseline_ns real, optimized_ns real);
create index if not exists results_by_id on results(id, backend);
insert into runs values('r1', 1000, 'nvidia-h200', 'abc', 'gauntlet run --targets ch07');
insert into runs values('r2', 2000, 'nvidia-h200', 'def', 'gauntlet run');
insert into results values('r1','ch07:a','cuda','','passed',2,1.9,2.1,200,100);
insert into results values('r1','ch07:b','cpu','','no_gain',1.01,0.9,1.1,101,100);
insert into results values('r1','ch07:c','cuda','','skipped',0,0,0,0,0);
insert into results values('r2','ch07:a','cuda','','regressed',0.5,0.4,0.6,50,100);
insert into results values('r2','ch07:a','cuda','n=64','passed',3,2.9,3.1,300,100);
insert into results values('r2','ch07:d','cuda','','passed',null,null,null,null,100);
)";
  char* error = nullptr;
  ASSERT_EQ(sqlite3_exec(db, sql, nullptr, nullptr, &error), SQLITE_OK) << error;
  sqlite3_close(db);
}

/// The number that a query gives.
int number_of(const FakeTree& folder, const std::string& sql) {
  sqlite3* db = nullptr;
  EXPECT_EQ(sqlite3_open((folder.root() / "runs.db").c_str(), &db), SQLITE_OK);
  int value = -1;
  const auto read = [](void* out, int, char** text, char**) {
    *static_cast<int*>(out) = std::stoi(text[0]);
    return 0;
  };
  EXPECT_EQ(sqlite3_exec(db, sql.c_str(), read, &value, nullptr), SQLITE_OK) << sql;
  sqlite3_close(db);
  return value;
}

TEST(RunStoreOpen, brings_a_store_of_version_1_up_to_date_without_losing_a_row) {
  FakeTree folder;
  write_store_v1(folder);
  for (int time = 0; time < 2; ++time) {  // once to bring it up to date, once as it is then
    auto store = RunStore::open(folder.root().string());
    ASSERT_TRUE(store) << store.error().message;
    EXPECT_EQ(number_of(folder, "select count(*) from runs"), 2);
    EXPECT_EQ(number_of(folder, "select count(*) from results"), 6);
    EXPECT_EQ(number_of(folder, "select count(*) from comparisons"), 5) << "all but the skipped";
    EXPECT_EQ(number_of(folder, "select count(*) from sides"), 10);
    EXPECT_EQ(number_of(folder, "select count(*) from results where sweep = 'n=64'"), 1);
    const auto runs = *store->runs(10);
    ASSERT_EQ(runs.size(), 2u);
    EXPECT_EQ(runs[0].run_id, "r2");
    EXPECT_EQ(runs[0].targets, 3);
    EXPECT_EQ(runs[0].failures, 1);
    EXPECT_EQ(runs[1].command_line, "gauntlet run --targets ch07");
    const auto rows = *store->history("*", "", 100);
    ASSERT_EQ(rows.size(), 5u);
    EXPECT_EQ(rows[0].id, "ch07:a");
    EXPECT_EQ(rows[0].run_id, "r2");
    EXPECT_EQ(rows[0].headline()->verdict, "loss");
    EXPECT_EQ(rows[1].commit, "abc");
    EXPECT_EQ(rows[1].headline()->kind, "pair");
    EXPECT_EQ(rows[1].headline()->speedup.lo, 1.9);
    EXPECT_EQ(rows[1].headline()->from_ns, 200);
    EXPECT_EQ(rows[1].headline()->to_ns, 100);
    EXPECT_EQ(rows[2].headline()->verdict, "no_gain");
    EXPECT_EQ(rows[3].headline(), nullptr);
    EXPECT_TRUE(std::isnan(rows[4].headline()->speedup.value));
  }
}

TEST(RunStoreOpen, keeps_working_after_it_was_brought_up_to_date) {
  FakeTree folder;
  write_store_v1(folder);
  auto store = RunStore::open(folder.root().string());
  ASSERT_TRUE(store);
  ASSERT_TRUE(store->put(run_of("r1", 1000, {ladder_result("labs:gemm")})));
  EXPECT_EQ(store->runs(10)->at(1).targets, 1) << "the run's old results are replaced";
  EXPECT_EQ(number_of(folder,
                      "select count(*) from comparisons where result_id not in"
                      " (select result_id from results)"),
            0);
  EXPECT_EQ(store->history("labs:gemm", "", 1)->at(0).comparisons.size(), 4u);
}

TEST(RunStoreOpen, brings_a_store_of_version_2_up_to_date) {
  FakeTree folder;
  {
    auto store = RunStore::open(folder.root().string());
    ASSERT_TRUE(store->put(run_of("r1", 1000, {ladder_result("labs:gemm")})));
  }
  // As version 2 had it.
  for (const char* column : {"ranks", "transport", "goal_metric"}) {
    number_of(folder, std::string("alter table results drop column ") + column + "; select 1");
  }
  for (const char* column : {"gain", "gain_lo", "gain_hi"}) {
    number_of(folder, std::string("alter table comparisons drop column ") + column + "; select 1");
  }
  number_of(folder, "pragma user_version = 2; select 1");
  auto store = RunStore::open(folder.root().string());
  ASSERT_TRUE(store) << store.error().message;
  const auto rows = *store->history("labs:gemm", "", 10);
  ASSERT_EQ(rows.size(), 1u);
  EXPECT_EQ(rows[0].on(), "cuda");
  EXPECT_EQ(rows[0].goal_metric, "");
  EXPECT_EQ(rows[0].headline()->gain.value, 0);
  EXPECT_EQ(rows[0].headline()->speedup.value, 6);
  ASSERT_TRUE(store->put(run_of("r2", 2000, {result_of("ch07:a", 2)})));
}

TEST(RunStoreOpen, refuses_a_store_of_a_later_version) {
  FakeTree folder;
  ASSERT_TRUE(RunStore::open(folder.root().string()));
  EXPECT_EQ(number_of(folder, "pragma user_version"), 3);
  number_of(folder, "pragma user_version = 4; select 1");
  const auto later = RunStore::open(folder.root().string());
  ASSERT_FALSE(later);
  EXPECT_THAT(later.error().message, HasSubstr("has version 4, this binary knows 3"));
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
