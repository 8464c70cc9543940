#include "lab/records/result.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "core/check.h"

namespace gauntlet::lab::inline records {
namespace {

constexpr std::array<std::pair<Status, const char*>, 7> kStatusNames{{
    {Status::passed, "passed"},
    {Status::no_gain, "no_gain"},
    {Status::regressed, "regressed"},
    {Status::wrong, "wrong"},
    {Status::crashed, "crashed"},
    {Status::timed_out, "timed_out"},
    {Status::skipped, "skipped"},
}};

}  // namespace

const char* name_of(Status status) {
  for (const auto& [value, name] : kStatusNames) {
    if (value == status) return name;
  }
  fail("a status without a name");
}

std::optional<Status> status_from(const std::string& name) {
  for (const auto& [value, known] : kStatusNames) {
    if (name == known) return value;
  }
  return std::nullopt;
}

bool is_failure(Status status) {
  return status == Status::wrong || status == Status::crashed || status == Status::timed_out ||
         status == Status::regressed;
}

std::string place_name(const std::string& backend, const RankSetup& ranks) {
  if (ranks.count == 0) return backend;
  return fmt::format("{} rank{} ({})", ranks.count, ranks.count == 1 ? "" : "s", ranks.transport);
}

bool Result::is_ladder() const {
  return std::ranges::any_of(sides, [](const SideResult& side) { return side.role == "rung"; });
}

const ComparisonResult& Result::headline() const {
  check(measured(), id + " was not measured and has no headline");
  const ComparisonResult* best = &comparisons.front();
  for (const ComparisonResult& comparison : comparisons) {
    if (comparison.kind == "total") best = &comparison;
  }
  return *best;
}

const SideResult& Result::side(const std::string& name) const {
  const auto found = std::ranges::find(sides, name, &SideResult::name);
  check(found != sides.end(), id + " has no side '" + name + "'");
  return *found;
}

std::int64_t Result::samples() const {
  std::int64_t sum = 0;
  for (const SideResult& side : sides) sum += side.samples;
  return sum;
}

std::string Result::sweep() const {
  const auto swept = knobs.find(sweep_key);
  return swept == knobs.end() ? "" : sweep_key + "=" + std::to_string(swept->second);
}

std::string unwitnessed(const Result& result) {
  if (result.status != Status::passed) return "";
  std::string open;
  for (const ComparisonResult& comparison : result.comparisons) {
    const WitnessResult& witness = comparison.witness;
    const bool step = comparison.kind == "step";
    const bool has_mechanism =
        comparison.kind == "pair" || (step && comparison.verdict == stats::Gain::gain);
    if (!has_mechanism || witness.shows_mechanism()) continue;
    const std::string why = witness.collected ? witness.name + " did not move" : witness.why_not;
    open += (open.empty() ? "" : ";") +
            (step ? " in " + comparison.from + " → " + comparison.to : std::string()) +
            (why.empty() ? "" : ": " + why);
    if (!step) return "mechanism not witnessed" + open;
  }
  return open.empty() ? "" : "mechanism not witnessed" + open;
}

}  // namespace gauntlet::lab::inline records
