#include "load/results/figure_json.h"

#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "stats/interval_json.h"

namespace gauntlet::load::inline results {

using json = nlohmann::ordered_json;

namespace {

double six_digits(double value) {
  return std::isfinite(value) ? std::stod(fmt::format("{:.6g}", value)) : value;
}

}  // namespace

json rounded(double value) {
  if (!std::isfinite(value)) return nullptr;
  if (value == 0) return 0;
  return six_digits(value);
}

json figure_json(const stats::Interval& figure) {
  return stats::to_json({.value = six_digits(figure.value),
                         .lo = six_digits(figure.lo),
                         .hi = six_digits(figure.hi)});
}

json percentiles_json(const stats::Percentiles& latency) {
  return {{"count", latency.count},
          {"mean", figure_json(latency.mean)},
          {"median", figure_json(latency.median)},
          {"p90", figure_json(latency.p90)},
          {"p95", figure_json(latency.p95)},
          {"p99", figure_json(latency.p99)},
          {"max", rounded(latency.max)}};
}

}  // namespace gauntlet::load::inline results
