// What a study has measured so far, a line of JSON per cell, on disk before the next cell begins:
// a study that was killed goes on from there.
#pragma once
#include <cstdint>
#include <filesystem>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "core/expected.h"

namespace gauntlet::study {

class Journal {
 public:
  /// A new file; one that is there already is replaced. `subject` says what is studied and how.
  static Expected<Journal> begin(const std::filesystem::path& path, const nlohmann::json& subject,
                                 std::int64_t started_at);
  /// Holds an error when there is no file, or one of another subject. A line that the end of its
  /// process cut short is dropped.
  static Expected<Journal> resume(const std::filesystem::path& path, const nlohmann::json& subject);

  bool has(const std::string& key) const { return cells_.contains(key); }
  /// Null where the cell was not measured.
  nlohmann::json at(const std::string& key) const;
  std::size_t num_cells() const { return cells_.size(); }
  /// Cells with this value.
  std::size_t count(const nlohmann::json& value) const;
  std::int64_t started_at() const { return started_at_; }
  /// That all cells took.
  double seconds() const { return seconds_; }

  /// On disk when this returns. `seconds`: what it took to measure.
  Expected<void> append(const std::string& key, const nlohmann::json& value, double seconds = 0);

 private:
  Expected<void> write(const std::string& line) const;

  std::filesystem::path path_;
  std::int64_t started_at_ = 0;  // seconds since the epoch
  double seconds_ = 0;
  std::map<std::string, std::string> cells_;  // JSON texts
};

}  // namespace gauntlet::study
