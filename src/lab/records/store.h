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

struct StoredComparison {
  std::string from;
  std::string to;
  std::string kind;  // pair, step, total, yardstick
  std::string verdict;
  bool headline = false;
  stats::Interval speedup;
  stats::Interval gain;  // of the goal's metric; value 0: the goal is speed
  double from_ns = 0;
  double to_ns = 0;
};

struct StoredResult {
  std::string run_id;
  std::int64_t started_at = 0;
  std::string commit;
  std::string id;
  std::string backend;
  RankSetup ranks;
  std::string goal_metric;  // empty: speed
  std::string status;
  std::vector<StoredComparison> comparisons;  // empty when nothing was measured

  std::string on() const { return place_name(backend, ranks); }
  /// Null when nothing was measured.
  const StoredComparison* headline() const;
};

class RunStore {
 public:
  /// A store of an earlier version is brought up to date in place; one of a later version is
  /// refused.
  static Expected<RunStore> open(const std::string& artifacts_folder);

  /// Inserts or replaces a run with all of its results.
  Expected<void> put(const RunRecord& record);
  /// Newest first.
  Expected<std::vector<StoredRun>> runs(int limit) const;
  /// Results of targets over all runs, newest first, `limit` of them; patterns as SQL GLOB over
  /// ids.
  Expected<std::vector<StoredResult>> history(const std::string& id_glob,
                                              const std::string& backend, int limit) const;

 private:
  struct Database;
  explicit RunStore(std::shared_ptr<Database> database) : database_(std::move(database)) {}
  std::shared_ptr<Database> database_;
};

}  // namespace gauntlet::lab::inline records
