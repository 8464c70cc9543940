#include "lab/records/store.h"

#include <fmt/format.h>
#include <sqlite3.h>

#include <filesystem>
#include <functional>

namespace gauntlet::lab::inline records {
namespace {

constexpr const char* kSchema = R"(
create table if not exists runs(
  run_id text primary key, started_at integer, machine text, commit_id text, command_line text);
create table if not exists results(
  run_id text references runs(run_id) on delete cascade, id text, backend text, sweep text,
  status text, speedup real, speedup_lo real, speedup_hi real, baseline_ns real, optimized_ns real);
create index if not exists results_by_id on results(id, backend);
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
  double number(int column) { return sqlite3_column_double(statement_, column); }

 private:
  sqlite3_stmt* statement_ = nullptr;
  bool ok_ = false;
  int bound_ = 0;
};

}  // namespace

Expected<RunStore> RunStore::open(const std::string& artifacts_folder) {
  auto database = std::make_shared<Database>();
  database->path = artifacts_folder + "/runs.db";
  if (sqlite3_open(database->path.c_str(), &database->handle) != SQLITE_OK) {
    return database->error();
  }
  sqlite3_busy_timeout(database->handle, 5000);
  if (sqlite3_exec(database->handle, "pragma foreign_keys=on", nullptr, nullptr, nullptr) !=
          SQLITE_OK ||
      sqlite3_exec(database->handle, kSchema, nullptr, nullptr, nullptr) != SQLITE_OK) {
    return database->error();
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
  for (const Result& result : record.results) {
    const Estimate speedup = result.speedup.value_or(Estimate{});
    std::string sweep;
    if (!result.sweep_key.empty()) {
      sweep = fmt::format("{}={}", result.sweep_key, result.knobs.at(result.sweep_key));
    }
    ok = ok && Statement(db, "insert into results values(?,?,?,?,?,?,?,?,?,?)")
                   .bind(record.run_id)
                   .bind(result.id)
                   .bind(std::string(name_of(result.backend)))
                   .bind(sweep)
                   .bind(std::string(name_of(result.status)))
                   .bind(speedup.median)
                   .bind(speedup.lo)
                   .bind(speedup.hi)
                   .bind(result.baseline ? result.baseline->ns.median : 0.0)
                   .bind(result.optimized ? result.optimized->ns.median : 0.0)
                   .run();
  }
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
  const bool ok =
      Statement(database_->handle,
                "select r.run_id, started_at, commit_id, id, backend, status, speedup, speedup_lo,"
                " speedup_hi, baseline_ns, optimized_ns from results r join runs using(run_id)"
                " where id glob ?1 and (?2 = '' or backend = ?2) and sweep = ''"
                " order by id, backend, started_at desc, r.run_id desc limit ?3")
          .bind(id_glob)
          .bind(backend)
          .bind(std::int64_t{limit})
          .run([&](Statement& row) {
            results.push_back({.run_id = row.text(0),
                               .started_at = row.integer(1),
                               .commit = row.text(2),
                               .id = row.text(3),
                               .backend = row.text(4),
                               .status = row.text(5),
                               .speedup = {row.number(6), row.number(7), row.number(8)},
                               .baseline_ns = row.number(9),
                               .optimized_ns = row.number(10)});
          });
  if (!ok) return database_->error();
  return results;
}

}  // namespace gauntlet::lab::inline records
