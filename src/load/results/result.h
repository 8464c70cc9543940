// A load test as it is kept: docs/load.md has the schema of its JSON.
#pragma once
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/expected.h"
#include "load/results/metrics.h"
#include "load/sweep.h"

namespace gauntlet::load::inline results {

inline constexpr const char* kLoadResultKind = "gauntlet-load";
inline constexpr int kLoadSchemaVersion = 1;

struct LoadResult {
  std::int64_t started_at = 0;  // seconds since the epoch
  std::string command_line;
  std::string version;  // of the client
  std::string url;
  std::string model;
  /// What was asked, as words: ("prompt tokens", "lognormal:128,0.8"), ...
  std::vector<std::pair<std::string, std::string>> workload;
  Slo slo;
  std::vector<PointResult> points;
  std::optional<SweepKey> sweep_key;  // none: a single run
  std::vector<double> loads;          // of the points of a sweep
  std::size_t best = 0;
  double capacity_per_s = 0;
  std::optional<double> sustained;
  bool is_saturated = false;
};

std::string json_text(const LoadResult& result);

/// What comparing needs: the loads, and the figures with their intervals.
Expected<LoadResult> load_result_from_json(std::string_view text, const std::string& name);

/// One self-contained page.
std::string render_html(const LoadResult& result);

}  // namespace gauntlet::load::inline results
