#include "lab/records/expectations.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "core/files.h"
#include "stats/statistics.h"

namespace gauntlet::lab::inline records {
namespace {

using nlohmann::json;

// Three half-widths of the interval, but never tighter than runs of the same binary agree, nor so
// loose that a real loss would pass.
constexpr double kMinTolerance = 0.03;
constexpr double kMaxTolerance = 0.20;

ExpectedValue expect(const Estimate& estimate) {
  return {.median = estimate.median,
          .tolerance = std::clamp(3 * relative_half_width(estimate), kMinTolerance, kMaxTolerance)};
}

std::string key_of(const Result& result) { return result.id + " " + name_of(result.backend); }

json to_json(const ExpectedValue& value) {
  return {{"median", value.median}, {"tolerance", value.tolerance}};
}
ExpectedValue value_from(const json& j) {
  return {.median = j.at("median"), .tolerance = j.at("tolerance")};
}
std::optional<ExpectedValue> optional_value(const json& j, const char* name) {
  if (!j.contains(name)) return std::nullopt;
  return value_from(j.at(name));
}

json to_json(const Expectation& e) {
  json j = {{"ratio", to_json(e.ratio)}, {"status", e.status}, {"knobs", e.knobs},
            {"run_id", e.run_id},        {"commit", e.commit}, {"recorded_at", e.recorded_at}};
  if (e.baseline_ns) j["baseline_ns"] = to_json(*e.baseline_ns);
  if (e.optimized_ns) j["optimized_ns"] = to_json(*e.optimized_ns);
  return j;
}
Expectation expectation_from(const json& j) {
  return {.ratio = value_from(j.at("ratio")),
          .baseline_ns = optional_value(j, "baseline_ns"),
          .optimized_ns = optional_value(j, "optimized_ns"),
          .status = j.at("status"),
          .knobs = j.at("knobs").get<std::map<std::string, std::int64_t>>(),
          .run_id = j.at("run_id"),
          .commit = j.at("commit"),
          .recorded_at = j.at("recorded_at")};
}

std::string path_of(const std::string& folder, const std::string& machine_key) {
  return folder + "/" + machine_key + ".json";
}

}  // namespace

Expected<Expectations> Expectations::load(const std::string& folder,
                                          const std::string& machine_key) {
  Expectations result;
  result.machine_key_ = machine_key;
  const std::string path = path_of(folder, machine_key);
  if (!std::filesystem::exists(path)) return result;
  const auto text = read_file(path);
  if (!text) return text.error();
  try {
    const json document = json::parse(*text);
    for (const auto& [key, entry] : document.at("expectations").items()) {
      result.entries_[key] = expectation_from(entry);
    }
  } catch (const json::exception& error) {
    return Error{fmt::format("{} is not a file of expectations: {}", path, error.what())};
  }
  return result;
}

const Expectation* Expectations::find(const Result& result) const {
  const auto found = entries_.find(key_of(result));
  if (found == entries_.end() || found->second.knobs != result.knobs) return nullptr;
  return &found->second;
}

void Expectations::record(const Result& result, const std::string& run_id,
                          const std::string& commit, std::int64_t now) {
  if (!result.sweep_key.empty() || !result.speedup) return;
  if (result.status != Status::passed && result.status != Status::no_gain &&
      result.status != Status::regressed) {
    return;
  }
  Expectation expectation{.ratio = expect(*result.speedup),
                          .status = name_of(result.status),
                          .knobs = result.knobs,
                          .run_id = run_id,
                          .commit = commit,
                          .recorded_at = now};
  if (result.backend == BackendKind::cuda) {
    expectation.baseline_ns = expect(result.baseline->ns);
    expectation.optimized_ns = expect(result.optimized->ns);
  }
  entries_[key_of(result)] = std::move(expectation);
}

Expected<void> Expectations::save(const std::string& folder) const {
  json entries = json::object();
  for (const auto& [key, entry] : entries_) entries[key] = to_json(entry);
  const json document = {
      {"machine", machine_key_}, {"schema_version", 1}, {"expectations", entries}};
  if (const auto made = make_folders(folder); !made) return made;
  return atomic_write_file(path_of(folder, machine_key_), document.dump(2) + "\n");
}

Comparison compare_with(const Expectation& expectation, const Result& result) {
  using Verdict = Comparison::Verdict;
  if (!result.speedup) return {};
  const auto [median, tolerance] = expectation.ratio;
  if (result.speedup->hi < median * (1 - tolerance)) {
    return {Verdict::regressed,
            fmt::format("speedup {:.3f} [{:.3f}, {:.3f}] fell below the expected {:.3f} (−{:.0f}%) "
                        "of run {}",
                        result.speedup->median, result.speedup->lo, result.speedup->hi, median,
                        tolerance * 100, expectation.run_id)};
  }
  const auto slower = [&](const char* side, const std::optional<ExpectedValue>& expected,
                          const Estimate& now) -> std::string {
    if (!expected || now.lo <= expected->median * (1 + expected->tolerance)) return "";
    return fmt::format("{} takes {:.1f} µs, expected {:.1f} µs (+{:.0f}%) of run {}", side,
                       now.median / 1e3, expected->median / 1e3, expected->tolerance * 100,
                       expectation.run_id);
  };
  for (const std::string& reason :
       {slower("optimized", expectation.optimized_ns, result.optimized->ns),
        slower("baseline", expectation.baseline_ns, result.baseline->ns)}) {
    if (!reason.empty()) return {Verdict::regressed, reason};
  }
  if (result.speedup->lo > median * (1 + tolerance)) {
    return {Verdict::better, fmt::format("speedup {:.3f} is above the expected {:.3f}; record it "
                                         "with --update-expectations",
                                         result.speedup->median, median)};
  }
  return {Verdict::as_expected, ""};
}

std::string expectations_folder(const std::string& program) {
  if (const char* chosen = std::getenv("GAUNTLET_EXPECTATIONS")) return chosen;
  if (std::filesystem::is_directory("expectations")) return "expectations";
  const auto beside = std::filesystem::path(program).parent_path() / "../../expectations";
  if (std::filesystem::is_directory(beside)) return beside.lexically_normal().string();
  return "expectations";
}

}  // namespace gauntlet::lab::inline records
