#include "tests/gpu/coverage.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>
#include <sstream>
#include <utility>

namespace gauntlet::tests::gpu {
namespace {

std::vector<std::string> changed_files(const Unit& unit, const UnitRecord& was,
                                       const Record& record) {
  std::set<std::string> files;
  for (const auto& [role, set] : unit.sources) {
    if (unit.samples(role)) continue;
    const auto recorded = was.sources.find(role);
    const SourceSet* before =
        recorded == was.sources.end() ? nullptr : record.sources(recorded->second);
    for (const std::string& file : differences(set, before ? *before : SourceSet{})) {
      files.insert(file);
    }
  }
  return {files.begin(), files.end()};
}

UnitCoverage judge_unit(const Unit& unit, const Record& record) {
  const UnitRecord* was = record.find(unit.name);
  if (!was) return {.unit = &unit, .state = UnitState::unrecorded};
  if (!is_of(*was, unit)) {
    return {.unit = &unit,
            .state = UnitState::changed,
            .record = was,
            .changed = changed_files(unit, *was, record)};
  }
  return {
      .unit = &unit, .state = was->good() ? UnitState::covered : UnitState::failed, .record = was};
}

/// As many as a person reads.
std::string listed(const std::vector<std::string>& files) {
  constexpr std::size_t kMost = 8;
  if (files.size() <= kMost) return fmt::format("{}", fmt::join(files, " "));
  return fmt::format("{} and {} more", fmt::join(files.begin(), files.begin() + kMost, " "),
                     files.size() - kMost);
}

/// How a line of the open findings begins that tells of a unit no GPU has run.
constexpr const char* kNotRunYet = "not run yet: ";

bool names_all(const std::string& reason, const std::vector<std::string>& files) {
  return std::ranges::all_of(
      files, [&](const std::string& file) { return reason.find(file) != std::string::npos; });
}

/// What a line of the open findings names that tells of a change of the lab itself.
constexpr const char* kLab = "lab";

bool has_lab_of_now(const UnitCoverage& target) {
  return target.record->sources.at("lab") == target.unit->sources.at("lab").id();
}

std::vector<std::string> lab_changes_since(const UnitCoverage& target, const Record& record) {
  return differences(target.unit->sources.at("lab"),
                     *record.sources(target.record->sources.at("lab")));
}

void find_samples(const Record& record, const OpenFindings& findings, Coverage& coverage) {
  std::map<std::pair<UnitKind, std::string>, std::vector<const UnitCoverage*>> chapters;
  for (const UnitCoverage& unit : coverage.units) {
    if (unit.unit->is_of_target() && unit.state == UnitState::covered) {
      chapters[{unit.unit->kind, unit.unit->chapter}].push_back(&unit);
    }
  }
  std::set<std::string> changed;
  for (auto& [kind_and_chapter, targets] : chapters) {
    // One that this machine cannot run shows nothing of the lab, unless there is no other.
    const auto skipped = [](const UnitCoverage* t) {
      return t->record->verdict.status == "skipped";
    };
    if (!std::ranges::all_of(targets, skipped)) std::erase_if(targets, skipped);
    if (std::ranges::any_of(targets, [](const auto* t) { return has_lab_of_now(*t); })) continue;
    const auto [oldest, newest] = std::ranges::minmax_element(
        targets, {}, [](const auto* target) { return target->record->occasion.when; });
    const auto finding = findings.find(kLab);
    const bool open = finding != findings.end() &&
                      names_all(finding->second, lab_changes_since(**newest, record));
    const Unit* unit = (*oldest)->unit;
    coverage.samples.push_back({.chapter = unit->chapter, .unit = unit, .open = open});
    if (open) continue;
    for (const std::string& file : lab_changes_since(**oldest, record)) changed.insert(file);
  }
  coverage.lab_changes = {changed.begin(), changed.end()};
  if (!findings.contains(kLab)) return;
  if (coverage.samples.empty()) {
    coverage.gaps.push_back(
        "the lab has an open finding, and every chapter was measured with it: take the finding "
        "out");
  } else if (std::ranges::any_of(coverage.samples, &OwedSample::open)) {
    coverage.open.push_back("lab was not tried again: " + findings.at(kLab));
  }
}

double expected_seconds(const UnitCoverage& unit) {
  if (unit.record && unit.record->verdict.seconds > 0) return unit.record->verdict.seconds;
  switch (unit.unit->kind) {
    case UnitKind::target:
      return 12;
    case UnitKind::test:
      return 10;
    case UnitKind::timed:
      return 60;
    case UnitKind::sabotage:
      return 6;
    case UnitKind::sanitizer:
      return 20;
    case UnitKind::ptx:
      return 30;
    case UnitKind::bench:
      return 90;
  }
  return 0;
}

bool runs_beside_others(UnitKind kind) {
  return kind == UnitKind::test || kind == UnitKind::sabotage || kind == UnitKind::sanitizer ||
         kind == UnitKind::ptx;
}

}  // namespace

bool Coverage::any_failed() const {
  return std::ranges::any_of(units, [](const auto& u) { return u.state == UnitState::failed; });
}

bool Coverage::complete() const {
  return gaps.empty() && std::ranges::all_of(samples, &OwedSample::open) &&
         std::ranges::all_of(units, [](const auto& u) {
           return u.state == UnitState::covered || u.state == UnitState::open;
         });
}

std::vector<std::string> Coverage::complaints() const {
  std::vector<std::string> lines = gaps;
  for (const UnitCoverage& unit : units) {
    const std::string& name = unit.unit->name;
    if (unit.state == UnitState::unrecorded) lines.push_back(name + ": no GPU has run it");
    if (unit.state == UnitState::changed) {
      lines.push_back(fmt::format("{}: changed since: {}", name, listed(unit.changed)));
    }
    if (unit.state == UnitState::failed) {
      lines.push_back(fmt::format("{}: {}: {}", name, unit.record->verdict.status,
                                  unit.record->verdict.reason));
    }
  }
  for (const OwedSample& sample : samples) {
    if (sample.open) continue;
    lines.push_back(fmt::format(
        "{}: the lab changed, and no target of {} was {} with it", sample.unit->name,
        sample.chapter, sample.unit->kind == UnitKind::sabotage ? "sabotaged" : "measured"));
  }
  if (!lab_changes.empty()) {
    lines.push_back(fmt::format("of the lab changed: {}", listed(lab_changes)));
  }
  return lines;
}

OpenFindings parse_open_findings(const std::string& text) {
  OpenFindings findings;
  std::stringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    const std::size_t colon = line.find(": ");
    if (!line.starts_with('#') && colon != std::string::npos) {
      findings[line.substr(0, colon)] = line.substr(colon + 2);
    }
  }
  return findings;
}

Coverage judge(const Units& units, const Record& record, const OpenFindings& findings) {
  Coverage coverage{.units = {}, .samples = {}, .lab_changes = {}, .gaps = units.gaps, .open = {}};
  for (const Unit& unit : units.all) coverage.units.push_back(judge_unit(unit, record));
  for (const auto& [name, reason] : findings) {
    if (name == kLab) continue;
    const auto unit = std::ranges::find_if(
        coverage.units, [&](const UnitCoverage& u) { return u.unit->name == name; });
    if (unit == coverage.units.end()) {
      coverage.gaps.push_back(name + " has an open finding, and there is no such unit");
    } else if (unit->state == UnitState::covered) {
      coverage.gaps.push_back(name + " has an open finding, and passes: take the finding out");
    } else if (unit->state == UnitState::failed) {
      unit->state = UnitState::open;
      coverage.open.push_back(name + " fails: " + reason);
    } else if (unit->state == UnitState::changed && names_all(reason, unit->changed)) {
      unit->state = UnitState::open;
      coverage.open.push_back(name + " was not run again: " + reason);
    } else if (unit->state == UnitState::unrecorded && reason.starts_with(kNotRunYet)) {
      unit->state = UnitState::open;
      coverage.open.push_back(name + " was " + reason);
    }
  }
  find_samples(record, findings, coverage);
  return coverage;
}

Plan plan(const Coverage& coverage, const PlanOptions& options) {
  std::set<const Unit*> sampled;
  for (const OwedSample& sample : coverage.samples) sampled.insert(sample.unit);
  std::vector<const UnitCoverage*> wanted;
  for (const UnitCoverage& unit : coverage.units) {
    const bool owed = unit.state != UnitState::covered || sampled.contains(unit.unit);
    if (options.scope == PlanOptions::Scope::owed && !owed) continue;
    if (unit.unit->name.find(options.only) == std::string::npos) continue;
    wanted.push_back(&unit);
  }
  std::ranges::sort(wanted, {}, [](const UnitCoverage* unit) {
    return std::pair(unit->record ? unit->record->occasion.when : std::string(), unit->unit->name);
  });
  Plan result;
  double together = 0, longest = 0, alone = 0;
  for (const UnitCoverage* unit : wanted) {
    const double seconds = expected_seconds(*unit);
    const bool beside = runs_beside_others(unit->unit->kind);
    const double then_together = together + (beside ? seconds : 0);
    const double then_longest = std::max(longest, beside ? seconds : 0);
    const double then_alone = alone + (beside ? 0 : seconds);
    const double total = std::max(then_together / options.lanes, then_longest) + then_alone;
    // The first goes ahead whatever it takes, or it would never be run.
    if (!result.now.empty() && total > options.seconds) {
      result.later.push_back(unit->unit);
      continue;
    }
    result.now.push_back(unit->unit);
    together = then_together, longest = then_longest, alone = then_alone;
  }
  return result;
}

}  // namespace gauntlet::tests::gpu
