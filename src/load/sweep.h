// Load raised step by step until the server is clearly saturated, then looked at closely around the
// best.
#pragma once
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "core/expected.h"
#include "load/results/metrics.h"

namespace gauntlet::load {

enum class SweepKey { rate, concurrency };

struct SweepSpec {
  SweepKey key = SweepKey::rate;
  double from = 1;
  double to = 64;

  /// "rate=1..64" or "concurrency=1..256".
  static Expected<SweepSpec> parse(const std::string& text);
};

struct SweepResult {
  std::vector<PointResult> points;  // in order of load
  std::vector<double> loads;        // rate or concurrency of each
  std::size_t best = 0;             // most goodput, or without an SLO most answers per second
  double capacity_per_s = 0;        // most answers per second at any load
  std::optional<double> sustained;  // the highest load below saturation
  bool is_saturated = false;        // some load was too much
};

/// Answers per second: steady where the run was long enough for it, else over the window.
double completed_per_s(const PointResult& point);

/// A rate is too much when fewer than nine in ten of its requests are answered in time, and so many
/// fewer that chance does not explain it (two standard deviations of a Poisson count); a
/// concurrency when it brings not even 5% more than the point before it.
bool is_saturated(SweepKey key, const PointResult& point, const PointResult* before);

/// Doubles the load until two points in a row are saturated, or one whose goodput is below half of
/// the best; then halves the steps on both sides of the best, twice. `run` measures one load; an
/// error ends the sweep; an interrupted point is its last.
using RunPoint = std::function<Expected<PointResult>(double load)>;
Expected<SweepResult> sweep(const SweepSpec& spec, const Slo& slo, const RunPoint& run);

}  // namespace gauntlet::load
