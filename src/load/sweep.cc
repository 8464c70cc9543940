#include "load/sweep.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "core/check.h"
#include "load/numbers.h"

namespace gauntlet::load {
namespace {

constexpr double kInTime = 0.9;
constexpr double kWorthIt = 1.05;
constexpr int kRefinements = 2;

using Points = std::map<double, PointResult>;

double score(const Slo& slo, const PointResult& point) {
  return slo.is_given() ? point.goodput_per_s.value : completed_per_s(point);
}

Points::const_iterator best_of(const Slo& slo, const Points& points) {
  return std::ranges::max_element(
      points, {}, [&](const Points::value_type& entry) { return score(slo, entry.second); });
}

const PointResult* before(const Points& points, Points::const_iterator point) {
  return point == points.begin() ? nullptr : &std::prev(point)->second;
}

/// A concurrency is a whole number.
double rounded(SweepKey key, double load) {
  return key == SweepKey::concurrency ? std::round(load) : load;
}

class Sweep {
 public:
  Sweep(const SweepSpec& spec, const Slo& slo, const RunPoint& run)
      : spec_(spec), slo_(slo), run_(run) {}

  Expected<void> raise() {
    int saturated = 0;
    for (double load = spec_.from;; load = std::min(load * 2, spec_.to)) {
      if (const auto added = add(load); !added || is_over_) return added;
      const auto point = points_.find(rounded(spec_.key, load));
      const bool is_too_much = is_saturated(spec_.key, point->second, before(points_, point));
      saturated = is_too_much ? saturated + 1 : 0;
      const double best = score(slo_, best_of(slo_, points_)->second);
      const bool is_hopeless =
          is_too_much && slo_.is_given() && score(slo_, point->second) < best / 2;
      if (saturated == 2 || is_hopeless || load >= spec_.to) return {};
    }
  }

  Expected<void> refine() {
    for (int i = 0; i < kRefinements && !is_over_; ++i) {
      const auto best = best_of(slo_, points_);
      std::vector<double> between;
      const auto add_between = [&](double a, double b) {
        between.push_back(rounded(spec_.key, std::sqrt(a * b)));
      };
      if (best != points_.begin()) add_between(std::prev(best)->first, best->first);
      if (std::next(best) != points_.end()) add_between(best->first, std::next(best)->first);
      for (const double load : between) {
        if (points_.contains(load) || is_over_) continue;
        if (const auto added = add(load); !added) return added;
      }
    }
    return {};
  }

  SweepResult result() const {
    SweepResult out;
    const auto best = best_of(slo_, points_);
    for (auto point = points_.begin(); point != points_.end(); ++point) {
      if (point == best) out.best = out.points.size();
      out.loads.push_back(point->first);
      out.points.push_back(point->second);
      out.capacity_per_s = std::max(out.capacity_per_s, completed_per_s(point->second));
      if (is_saturated(spec_.key, point->second, before(points_, point))) {
        out.is_saturated = true;
      } else if (!out.is_saturated) {
        out.sustained = point->first;
      }
    }
    return out;
  }

 private:
  Expected<void> add(double load) {
    const double value = rounded(spec_.key, load);
    auto point = run_(value);
    if (!point) return point.error();
    is_over_ = point->is_interrupted;
    points_.insert_or_assign(value, std::move(*point));
    return {};
  }

  const SweepSpec& spec_;
  const Slo& slo_;
  const RunPoint& run_;
  Points points_;
  bool is_over_ = false;
};

}  // namespace

Expected<SweepSpec> SweepSpec::parse(const std::string& text) {
  const auto [name, range] = cut(text, "=");
  const auto [low, high] = cut(range, "..");
  const auto from = number<double>(low), to = number<double>(high);
  const bool is_concurrency = name == "concurrency";
  const auto is_whole = [](double value) { return value >= 1 && value == std::round(value); };
  if ((name != "rate" && !is_concurrency) || !from || !to || *from <= 0 || *from > *to ||
      *to > 1e6 || (is_concurrency && (!is_whole(*from) || !is_whole(*to)))) {
    return Error{fmt::format("--sweep takes a range of rates or concurrencies, as in rate=1..64 or "
                             "concurrency=1..256; not '{}'",
                             text),
                 ErrorKind::wrong_use};
  }
  return SweepSpec{
      .key = is_concurrency ? SweepKey::concurrency : SweepKey::rate, .from = *from, .to = *to};
}

double completed_per_s(const PointResult& point) {
  return point.steady ? point.steady->requests_per_s.value : point.requests_per_s.value;
}

bool is_saturated(SweepKey key, const PointResult& point, const PointResult* before) {
  const double completed = completed_per_s(point);
  if (key == SweepKey::concurrency) {
    return before && completed < kWorthIt * completed_per_s(*before);
  }
  // Without a steady part, the window also holds the wait for the last answers.
  const double in_time = point.steady ? kInTime : kInTime / 2;
  const double seconds = point.steady ? point.steady->seconds : point.window_s;
  const double due = point.offered_per_s * seconds, missing = due - completed * seconds;
  return missing > (1 - in_time) * due && missing > 2 * std::sqrt(due);
}

Expected<SweepResult> sweep(const SweepSpec& spec, const Slo& slo, const RunPoint& run) {
  Sweep sweep(spec, slo, run);
  if (const auto raised = sweep.raise(); !raised) return raised.error();
  if (const auto refined = sweep.refine(); !refined) return refined.error();
  return sweep.result();
}

}  // namespace gauntlet::load
