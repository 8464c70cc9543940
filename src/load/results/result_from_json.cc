// A load test out of the JSON that it was kept as.
#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "load/results/result.h"
#include "stats/interval_json.h"

namespace gauntlet::load::inline results {
namespace {

/// Reading: what is missing, or no number, is not known.
double number_at(const nlohmann::json& object, const char* name) {
  const auto found = object.find(name);
  return found != object.end() && found->is_number() ? found->get<double>() : NAN;
}

stats::Interval figure_at(const nlohmann::json& object, const char* name) {
  const auto found = object.find(name);
  if (found == object.end() || !found->is_object()) return {};
  const stats::Interval figure = stats::interval_from_json(*found);
  return std::isnan(figure.value) ? stats::Interval{} : figure;
}

stats::Percentiles percentiles_at(const nlohmann::json& object, const char* name) {
  const auto found = object.find(name);
  if (found == object.end() || !found->is_object()) return {};
  return {.mean = figure_at(*found, "mean"),
          .median = figure_at(*found, "median"),
          .p90 = figure_at(*found, "p90"),
          .p95 = figure_at(*found, "p95"),
          .p99 = figure_at(*found, "p99"),
          .max = number_at(*found, "max")};
}

PointResult point_from(const nlohmann::json& object) {
  return {.offered_per_s = number_at(object, "offered_per_s"),
          .requests_per_s = figure_at(object, "requests_per_s"),
          .output_tokens_per_s = figure_at(object, "output_tokens_per_s"),
          .total_tokens_per_s = figure_at(object, "total_tokens_per_s"),
          .good_share = figure_at(object, "good_share"),
          .goodput_per_s = figure_at(object, "goodput_per_s"),
          .ttft_s = percentiles_at(object, "ttft_s"),
          .tpot_s = percentiles_at(object, "tpot_s"),
          .itl_s = percentiles_at(object, "itl_s"),
          .e2e_s = percentiles_at(object, "e2e_s")};
}

std::optional<double> optional_at(const nlohmann::json& object, const char* name) {
  const double value = number_at(object, name);
  return std::isnan(value) ? std::nullopt : std::optional(value);
}

std::string text_at(const nlohmann::json& object, const char* name) {
  const auto found = object.find(name);
  return found != object.end() && found->is_string() ? found->get<std::string>() : "";
}

Expected<LoadResult> result_from(const nlohmann::json& root, const std::string& name) {
  if (!root.is_object() || text_at(root, "kind") != kLoadResultKind || !root.contains("points") ||
      !root["points"].is_array() || root["points"].empty()) {
    return Error{fmt::format("{} is no result of 'gauntlet load --format json'", name),
                 ErrorKind::wrong_use};
  }
  if (number_at(root, "schema_version") != kLoadSchemaVersion) {
    return Error{fmt::format("{} was written by another version of gauntlet load: its schema is "
                             "not {}",
                             name, kLoadSchemaVersion),
                 ErrorKind::wrong_use};
  }
  LoadResult result{.command_line = text_at(root, "command_line"),
                    .url = text_at(root, "url"),
                    .model = text_at(root, "model")};
  for (const nlohmann::json& point : root["points"]) {
    if (point.is_object()) result.points.push_back(point_from(point));
  }
  if (root.contains("slo") && root["slo"].is_object()) {
    result.slo = {.ttft_s = optional_at(root["slo"], "ttft_s"),
                  .tpot_s = optional_at(root["slo"], "tpot_s"),
                  .e2e_s = optional_at(root["slo"], "e2e_s")};
  }
  const auto sweep = root.find("sweep");
  if (sweep == root.end() || !sweep->is_object()) return result;
  result.sweep_key =
      text_at(*sweep, "key") == "concurrency" ? SweepKey::concurrency : SweepKey::rate;
  for (const nlohmann::json& load : sweep->value("loads", nlohmann::json::array())) {
    result.loads.push_back(load.is_number() ? load.get<double>() : 0);
  }
  const double best = number_at(*sweep, "best");
  const auto last = static_cast<double>(result.points.size() - 1);
  if (result.loads.size() != result.points.size() || !(best >= 0 && best <= last)) {
    return Error{fmt::format("the sweep in {} does not fit its points", name),
                 ErrorKind::wrong_use};
  }
  result.best = static_cast<std::size_t>(best);
  return result;
}

}  // namespace

Expected<LoadResult> load_result_from_json(std::string_view text, const std::string& name) {
  try {
    return result_from(nlohmann::json::parse(text, nullptr, false), name);
  } catch (const nlohmann::json::exception& e) {
    return Error{fmt::format("{} holds something else than a load test: {}", name, e.what()),
                 ErrorKind::wrong_use};
  }
}

}  // namespace gauntlet::load::inline results
