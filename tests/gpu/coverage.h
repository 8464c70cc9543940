// What the record says of the sources as they are now, and what a GPU has to be asked next.
#pragma once
#include <map>
#include <string>
#include <vector>

#include "tests/gpu/record.h"

namespace gauntlet::tests::gpu {

/// Open: it failed or changed, and tests/gpu/open_findings says why.
enum class UnitState { covered, unrecorded, changed, failed, open };

/// Units that fail for a reason that is written down and not yet mended, or that were not run again
/// since files changed that the reason names, each of them: name and reason. They do not fail the
/// check, which tells of them each time; one that is covered by now does. The name "lab" stands for
/// the targets owed by its changes; its reason names what changed since the last one was measured.
using OpenFindings = std::map<std::string, std::string>;
/// A line for each, "<unit>: <reason>"; lines that begin with # are for people.
OpenFindings parse_open_findings(const std::string& text);

struct UnitCoverage {
  const Unit* unit = nullptr;
  UnitState state = UnitState::covered;
  const UnitRecord* record = nullptr;  // null when unrecorded
  std::vector<std::string> changed;    // files, when changed
};

/// A chapter of which no target was measured with the lab as it is.
struct OwedSample {
  std::string chapter;
  const Unit* unit = nullptr;  // the one whose turn it is: measured longest ago
  bool open = false;           // an open finding of the lab names what changed
};

struct Coverage {
  std::vector<UnitCoverage> units;
  std::vector<OwedSample> samples;
  std::vector<std::string> lab_changes;  // files, since the targets of `samples` were measured
  std::vector<std::string> gaps;
  std::vector<std::string> open;  // findings, in lines for a person

  bool any_failed() const;
  bool complete() const;
  /// What is missing, in lines for a person; empty when complete.
  std::vector<std::string> complaints() const;
};

/// The units and the record have to outlive it.
Coverage judge(const Units& units, const Record& record, const OpenFindings& findings = {});

struct PlanOptions {
  enum class Scope { owed, all };
  Scope scope = Scope::owed;
  std::string only;      // part of a name; empty: any
  double seconds = 540;  // what one call may take
  int lanes = 6;         // units that measure nothing and run at once
};

struct Plan {
  std::vector<const Unit*> now;    // measured longest ago first
  std::vector<const Unit*> later;  // those that do not fit
};

Plan plan(const Coverage& coverage, const PlanOptions& options);

}  // namespace gauntlet::tests::gpu
