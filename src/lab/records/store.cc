#include "lab/records/store.h"

#include <fmt/format.h>
#include <sqlite3.h>

#include <algorithm>
#include <functional>
#include <limits>

namespace gauntlet::lab::inline records {
namespace {

// Kept in SQLite's user_version; stores of version 1 have 0 there.
constexpr std::int64_t kStoreVersion = 3;

constexpr const char* kSchema = R"(
create table runs(
  run_id text primary key, started_at integer, machine text, commit_id text, command_line text);
create table results(
  result_id integer primary key, run_id text references runs(run_id) on delete cascade, id text,
  backend text, sweep text, status text, ranks integer not null default 0,
  transport text not null default '', goal_metric text not null default '');
create index results_by_id on results(id, backend);
create index results_by_run on results(run_id);
create table sides(
  result_id integer references results(result_id) on delete cascade, position integer, name text,
  role text, ns real, ns_lo real, ns_hi real, primary key(result_id, position));
create table comparisons(
  result_id integer references results(result_id) on delete cascade, position integer,
  from_side text, to_side text, kind text, headline integer, verdict text,
  speedup real, speedup_lo real, speedup_hi real, gain real default 0, gain_lo real,
  gain_hi real, primary key(result_id, position));
)";

// Version 2 knew neither ranks nor goals beside speed.
constexpr const char* kTakeVersion2 = R"(
alter table results add column ranks integer not null default 0;
alter table results add column transport text not null default '';
alter table results add column goal_metric text not null default '';
alter table comparisons add column gain real default 0;
alter table comparisons add column gain_lo real;
alter table comparisons add column gain_hi real;
)";

// Version 1 had one table of results, each with the speedup of one pair, 0 where there was none and
// null where it was not finite.
constexpr const char* kSetVersion1Aside = R"(
drop index if exists results_by_id;
alter table runs rename to runs_v1;
alter table results rename to results_v1;
)";
constexpr const char* kTakeVersion1 = R"(
insert into runs select run_id, started_at, machine, commit_id, command_line from runs_v1;
insert into results(result_id, run_id, id, backend, sweep, status) select rowid, run_id, id, backend, sweep, status from results_v1;
insert into sides select rowid, 0, 'baseline', 'baseline', baseline_ns, null, null
  from results_v1 where speedup is null or speedup > 0;
insert into sides select rowid, 1, 'optimized', 'optimized', optimized_ns, null, null
  from results_v1 where speedup is null or speedup > 0;
insert into comparisons(result_id, position, from_side, to_side, kind, headline, verdict, speedup,
  speedup_lo, speedup_hi) select rowid, 0, 'baseline', 'optimized', 'pair', 1,
  case when speedup_lo > 1.02 then 'gain' when speedup_hi < 1 then 'loss' else 'no_gain' end,
  speedup, speedup_lo, speedup_hi from results_v1 where speedup is null or speedup > 0;
drop table results_v1;
drop table runs_v1;
)";

}  // namespace

struct RunStore::Database {
  sqlite3* handle = nullptr;
  std::string path;
  ~Database() { sqlite3_close(handle); }
  Error error() const {
    return {fmt::format("the run store {} cannot be used: {}", path,
                        handle ? sqlite3_errmsg(handle) : "out of memory")};
  }
};

namespace {

/// A prepared statement; values are bound in order and rows visited one by one.
class Statement {
 public:
  Statement(sqlite3* database, const char* sql) {
    ok_ = sqlite3_prepare_v2(database, sql, -1, &statement_, nullptr) == SQLITE_OK;
  }
  ~Statement() { sqlite3_finalize(statement_); }
  Statement(const Statement&) = delete;
  Statement& operator=(const Statement&) = delete;

  Statement& bind(const std::string& text) {
    if (ok_) sqlite3_bind_text(statement_, ++bound_, text.c_str(), -1, SQLITE_TRANSIENT);
    return *this;
  }
  Statement& bind(std::int64_t value) {
    if (ok_) sqlite3_bind_int64(statement_, ++bound_, value);
    return *this;
  }
  Statement& bind(double value) {
    if (ok_) sqlite3_bind_double(statement_, ++bound_, value);
    return *this;
  }
  /// False when the database refused.
  bool run(const std::function<void(Statement&)>& on_row = {}) {
    if (!ok_) return false;
    int code;
    while ((code = sqlite3_step(statement_)) == SQLITE_ROW) {
      if (on_row) on_row(*this);
    }
    return code == SQLITE_DONE;
  }
  std::string text(int column) {
    const auto* value = reinterpret_cast<const char*>(sqlite3_column_text(statement_, column));
    return value ? value : "";
  }
  std::int64_t integer(int column) { return sqlite3_column_int64(statement_, column); }
  /// SQLite keeps a number that is not finite as null.
  double number(int column) {
    return sqlite3_column_type(statement_, column) == SQLITE_NULL
               ? std::numeric_limits<double>::quiet_NaN()
               : sqlite3_column_double(statement_, column);
  }

 private:
  sqlite3_stmt* statement_ = nullptr;
  bool ok_ = false;
  int bound_ = 0;
};

bool run_all(sqlite3* db, const char* sql) {
  return sqlite3_exec(db, sql, nullptr, nullptr, nullptr) == SQLITE_OK;
}

std::int64_t version_of(sqlite3* db) {
  std::int64_t version = -1;
  Statement(db, "pragma user_version").run([&](Statement& row) { version = row.integer(0); });
  return version;
}

bool has_version_1(sqlite3* db) {
  bool found = false;
  Statement(db, "select 1 from sqlite_master where type = 'table' and name = 'results'")
      .run([&](Statement&) { found = true; });
  return found;
}

/// Makes the tables, and takes over those of earlier versions where there are any, as one
/// transaction. The version is read inside of it: another process may have been faster.
bool bring_up_to_date(sqlite3* db) {
  if (!run_all(db, "begin immediate")) return false;
  bool ok = true;
  const std::int64_t version = version_of(db);
  if (version == 0) {
    const bool old = has_version_1(db);
    ok = (!old || run_all(db, kSetVersion1Aside)) && run_all(db, kSchema) &&
         (!old || run_all(db, kTakeVersion1));
  } else if (version == 2) {
    ok = run_all(db, kTakeVersion2);
  }
  return ok && run_all(db, fmt::format("pragma user_version = {}", kStoreVersion).c_str()) &&
         run_all(db, "commit");
}

bool insert_result(sqlite3* db, const std::string& run_id, const Result& result) {
  bool ok = Statement(db, "insert into results values(null,?,?,?,?,?,?,?,?)")
                .bind(run_id)
                .bind(result.id)
                .bind(std::string(name_of(result.backend)))
                .bind(result.sweep())
                .bind(std::string(name_of(result.status)))
                .bind(std::int64_t{result.ranks.count})
                .bind(result.ranks.transport)
                .bind(result.goal_metric)
                .run();
  const std::int64_t result_id = sqlite3_last_insert_rowid(db);
  std::int64_t position = 0;
  for (const SideResult& side : result.sides) {
    ok = ok && Statement(db, "insert into sides values(?,?,?,?,?,?,?)")
                   .bind(result_id)
                   .bind(position++)
                   .bind(side.name)
                   .bind(side.role)
                   .bind(side.ns.value)
                   .bind(side.ns.lo)
                   .bind(side.ns.hi)
                   .run();
  }
  position = 0;
  for (const ComparisonResult& comparison : result.comparisons) {
    ok = ok && Statement(db, "insert into comparisons values(?,?,?,?,?,?,?,?,?,?,?,?,?)")
                   .bind(result_id)
                   .bind(position++)
                   .bind(comparison.from)
                   .bind(comparison.to)
                   .bind(comparison.kind)
                   .bind(std::int64_t{&comparison == &result.headline()})
                   .bind(std::string(stats::name_of(comparison.verdict)))
                   .bind(comparison.speedup.value)
                   .bind(comparison.speedup.lo)
                   .bind(comparison.speedup.hi)
                   .bind(comparison.gain.value)
                   .bind(comparison.gain.lo)
                   .bind(comparison.gain.hi)
                   .run();
  }
  return ok;
}

}  // namespace

const StoredComparison* StoredResult::headline() const {
  const auto found = std::ranges::find_if(comparisons, &StoredComparison::headline);
  return found == comparisons.end() ? nullptr : &*found;
}

Expected<RunStore> RunStore::open(const std::string& artifacts_folder) {
  auto database = std::make_shared<Database>();
  database->path = artifacts_folder + "/runs.db";
  if (sqlite3_open(database->path.c_str(), &database->handle) != SQLITE_OK) {
    return database->error();
  }
  sqlite3* db = database->handle;
  sqlite3_busy_timeout(db, 5000);
  if (!run_all(db, "pragma foreign_keys=on")) return database->error();
  const std::int64_t version = version_of(db);
  if (version > kStoreVersion) {
    return Error{
        fmt::format("the run store {} has version {}, this binary knows {}: use the newer "
                    "gauntlet that made it, or another --artifacts-dir",
                    database->path, version, kStoreVersion)};
  }
  if (version != kStoreVersion && !bring_up_to_date(db)) {
    const Error error = database->error();
    run_all(db, "rollback");
    return error;
  }
  return RunStore(std::move(database));
}

Expected<void> RunStore::put(const RunRecord& record) {
  sqlite3* db = database_->handle;
  bool ok = Statement(db, "begin immediate").run();
  ok = ok && Statement(db, "delete from results where run_id = ?").bind(record.run_id).run();
  ok = ok &&
       Statement(db, "insert or replace into runs values(?,?,?,?,?)")
           .bind(record.run_id)
           .bind(record.started_at)
           .bind(record.machine.gpus.empty() ? record.machine.cpu_key() : record.machine.gpu_key())
           .bind(record.build.commit)
           .bind(record.command_line)
           .run();
  for (const Result& result : record.results) ok = ok && insert_result(db, record.run_id, result);
  ok = ok && Statement(db, "commit").run();
  if (ok) return {};
  const Error error = database_->error();
  Statement(db, "rollback").run();
  return error;
}

Expected<std::vector<StoredRun>> RunStore::runs(int limit) const {
  std::vector<StoredRun> runs;
  const bool ok =
      Statement(database_->handle,
                "select run_id, started_at, machine, commit_id, command_line,"
                " (select count(*) from results r where r.run_id = runs.run_id),"
                " (select count(*) from results r where r.run_id = runs.run_id and r.status in"
                "  ('wrong','crashed','timed_out','regressed'))"
                " from runs order by started_at desc, run_id desc limit ?")
          .bind(std::int64_t{limit})
          .run([&](Statement& row) {
            runs.push_back({.run_id = row.text(0),
                            .started_at = row.integer(1),
                            .machine = row.text(2),
                            .commit = row.text(3),
                            .command_line = row.text(4),
                            .targets = static_cast<int>(row.integer(5)),
                            .failures = static_cast<int>(row.integer(6))});
          });
  if (!ok) return database_->error();
  return runs;
}

Expected<std::vector<StoredResult>> RunStore::history(const std::string& id_glob,
                                                      const std::string& backend, int limit) const {
  std::vector<StoredResult> results;
  std::int64_t last_id = -1;
  const bool ok =
      Statement(database_->handle,
                "with chosen as (select result_id, run_id, started_at, commit_id, id, backend,"
                "  ranks, transport, goal_metric, status from results join runs using(run_id)"
                "  where id glob ?1 and (?2 = '' or backend = ?2) and sweep = ''"
                "  order by id, backend, ranks, transport, started_at desc, run_id desc limit ?3)"
                " select r.result_id, run_id, started_at, commit_id, id, backend, status,"
                " from_side, to_side, kind, verdict, headline, speedup, speedup_lo, speedup_hi,"
                " (select ns from sides s where s.result_id = r.result_id and name = from_side),"
                " (select ns from sides s where s.result_id = r.result_id and name = to_side),"
                " ranks, transport, goal_metric, gain, gain_lo, gain_hi from chosen r left join "
                "comparisons c on c.result_id = r.result_id"
                " order by id, backend, ranks, transport, started_at desc, run_id desc,"
                " r.result_id, position")
          .bind(id_glob)
          .bind(backend)
          .bind(std::int64_t{limit})
          .run([&](Statement& row) {
            if (row.integer(0) != last_id) {
              last_id = row.integer(0);
              results.push_back(
                  {.run_id = row.text(1),
                   .started_at = row.integer(2),
                   .commit = row.text(3),
                   .id = row.text(4),
                   .backend = row.text(5),
                   .ranks = {.count = static_cast<int>(row.integer(17)), .transport = row.text(18)},
                   .goal_metric = row.text(19),
                   .status = row.text(6)});
            }
            if (row.text(9).empty()) return;
            results.back().comparisons.push_back(
                {.from = row.text(7),
                 .to = row.text(8),
                 .kind = row.text(9),
                 .verdict = row.text(10),
                 .headline = row.integer(11) != 0,
                 .speedup = {row.number(12), row.number(13), row.number(14)},
                 .gain = {row.number(20), row.number(21), row.number(22)},
                 .from_ns = row.number(15),
                 .to_ns = row.number(16)});
          });
  if (!ok) return database_->error();
  return results;
}

}  // namespace gauntlet::lab::inline records
