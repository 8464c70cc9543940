// Records: a run's folder (manifest, results, reports, logs, profiles), written atomically as the
// run goes on, so that a killed run can be resumed.
#pragma once
#include <chrono>
#include <string>

#include "core/expected.h"
#include "lab/records/run_record.h"

namespace gauntlet::lab::inline records {

/// "20261115-022501-4f2a": date, time and the second's fraction in 65536ths, so that ids sort by
/// time.
std::string make_run_id(std::chrono::system_clock::time_point now);

class RunFolder {
 public:
  /// Makes <artifacts>/<run_id> with logs/ and profiles/. Nothing is written when this fails.
  static Expected<RunFolder> create(const std::string& artifacts, const std::string& run_id);
  /// An existing run, by id below the artifacts folder, by path, or "latest" / "previous".
  static Expected<RunFolder> find(const std::string& artifacts, const std::string& name);

  const std::string& path() const { return path_; }
  std::string run_id() const;

  /// manifest.json and results.json, after every result.
  Expected<void> save(const RunRecord& record) const;
  /// report.md and report.html.
  Expected<void> save_reports(const RunRecord& record) const;
  Expected<RunRecord> load() const;

 private:
  explicit RunFolder(std::string path) : path_(std::move(path)) {}
  std::string path_;
};

}  // namespace gauntlet::lab::inline records
