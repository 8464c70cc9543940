#include "stats/interval_json.h"

#include <nlohmann/json.hpp>

#include "core/text/json_fields.h"

namespace gauntlet::stats {

using nlohmann::json;

json to_json(const Interval& interval) {
  const auto number = [](double value) { return std::isfinite(value) ? json(value) : json(); };
  return {
      {"value", number(interval.value)}, {"lo", number(interval.lo)}, {"hi", number(interval.hi)}};
}

Interval interval_from_json(const json& from) {
  constexpr double kUnknown = std::numeric_limits<double>::quiet_NaN();
  const json& value = from.at(from.contains("value") ? "value" : "median");
  return {.value = value.is_null() ? kUnknown : value.get<double>(),
          .lo = number_at(from, "lo", kUnknown),
          .hi = number_at(from, "hi", kUnknown)};
}

}  // namespace gauntlet::stats
