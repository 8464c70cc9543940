#include "load/figure_json.h"

#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>

namespace gauntlet::load {

using json = nlohmann::ordered_json;

json rounded(double value) {
  if (!std::isfinite(value)) return nullptr;
  if (value == 0) return 0;
  return std::stod(fmt::format("{:.6g}", value));
}

json figure_json(const Figure& figure) {
  return {{"value", rounded(figure.value)}, {"lo", rounded(figure.lo)}, {"hi", rounded(figure.hi)}};
}

json percentiles_json(const Percentiles& latency) {
  return {{"count", latency.count},
          {"mean", figure_json(latency.mean)},
          {"median", figure_json(latency.median)},
          {"p90", figure_json(latency.p90)},
          {"p95", figure_json(latency.p95)},
          {"p99", figure_json(latency.p99)},
          {"max", rounded(latency.max)}};
}

}  // namespace gauntlet::load
