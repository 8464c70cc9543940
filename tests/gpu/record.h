// The committed record of what a GPU said of each unit, and of which sources.
#pragma once
#include <map>
#include <string>

#include "core/expected.h"
#include "tests/gpu/units.h"

namespace gauntlet::tests::gpu {

/// What one run of a unit found.
struct Verdict {
  std::string status;   // of a target's result, or passed, failed, crashed, timed_out, skipped
  std::string reason;   // for any status but passed
  std::string speedup;  // of a target: JSON of {"value", "lo", "hi"}; empty without
  double seconds = 0;
  // Of a target, too: why its speedup may be believed. Empty in records that did not keep it.
  std::string kind = {};  // comparison, demonstration
  /// JSON of {"to": side, "name", "before", "after", "moved", "verdict"} for a pair or each step.
  std::string witnesses = {};
  std::string ceiling_percent = {};  // JSON of {side: percent}
};

/// Where, when and with what a unit ran.
struct Occasion {
  std::string machine;  // "NVIDIA H200, driver 580.159.04"
  std::string when;     // "2026-11-16T09:30:00Z": sorts by time
  std::string run;      // of `gauntlet run`, or of the whole check
  std::string commit;   // that the programs were built from
};

struct UnitRecord {
  Verdict verdict;
  Occasion occasion;
  std::map<std::string, std::string> sources;  // role: id of a set

  /// Verified, or skipped for a named reason.
  bool good() const;
};

class Record {
 public:
  static Expected<Record> from_json(const std::string& text);
  /// A line per unit and per set of sources, sorted, so that two records merge line by line.
  std::string to_json() const;

  const UnitRecord* find(const std::string& unit) const;
  const SourceSet* sources(const std::string& id) const;

  void put(const Unit& unit, Verdict verdict, Occasion occasion);
  /// Takes from `other` what covers the sources of `units` better, and of equals the later one.
  void merge(const Record& other, const Units& units);
  /// Drops units that are no more, and sources that no unit refers to.
  void prune(const Units& units);

 private:
  std::map<std::string, UnitRecord> units_;
  std::map<std::string, SourceSet> sets_;  // by id
};

/// Role: id of a set.
std::map<std::string, std::string> source_ids(const Unit& unit);

/// Did it run with these very sources? A role that is only sampled does not count.
bool is_of(const UnitRecord& record, const Unit& unit);

}  // namespace gauntlet::tests::gpu
