// Run store: an SQLite file beside the runs that answers questions across them (history, trends).
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/expected.h"
#include "lab/records/run_record.h"

namespace gauntlet::lab::inline records {

struct StoredRun {
  std::string run_id;
  std::int64_t started_at = 0;
  std::string machine;
  std::string commit;
  std::string command_line;
  int targets = 0;
  int failures = 0;
};

struct StoredResult {
  std::string run_id;
  std::int64_t started_at = 0;
  std::string commit;
  std::string id;
  std::string backend;
  std::string status;
  Estimate speedup;
  double baseline_ns = 0;
  double optimized_ns = 0;
};

class RunStore {
 public:
  static Expected<RunStore> open(const std::string& artifacts_folder);

  /// Inserts or replaces a run with all of its results.
  Expected<void> put(const RunRecord& record);
  /// Newest first.
  Expected<std::vector<StoredRun>> runs(int limit) const;
  /// Results of a target over all runs, newest first; patterns as SQL GLOB over ids.
  Expected<std::vector<StoredResult>> history(const std::string& id_glob,
                                              const std::string& backend, int limit) const;

 private:
  struct Database;
  explicit RunStore(std::shared_ptr<Database> database) : database_(std::move(database)) {}
  std::shared_ptr<Database> database_;
};

}  // namespace gauntlet::lab::inline records
