#include <nlohmann/json.hpp>

#include "load/results/figure_json.h"
#include "load/results/result.h"

namespace gauntlet::load::inline results {
namespace {

using json = nlohmann::ordered_json;

json to_json(const ArrivalSpec& arrivals) {
  json out = {{"kind", name_of(arrivals.kind)}};
  if (arrivals.kind == ArrivalKind::closed) {
    out["concurrency"] = arrivals.concurrency;
  } else if (arrivals.kind != ArrivalKind::trace) {
    out["rate_per_s"] = rounded(arrivals.rate_per_s);
    if (arrivals.kind == ArrivalKind::poisson) out["burstiness"] = rounded(arrivals.burstiness);
  }
  return out;
}

json errors_to_json(const PointResult& point) {
  json errors = json::array();
  for (const auto& [name, error] : point.errors) {
    errors.push_back({{"kind", name}, {"count", error.count}, {"example", error.example}});
  }
  return errors;
}

json charts_to_json(const PointResult& point) {
  json slices = {{"seconds", rounded(point.slice_s)},
                 {"output_tokens_per_s", json::array()},
                 {"in_flight", json::array()},
                 {"ttft_s", json::array()}};
  for (const Slice& slice : point.slices) {
    slices["output_tokens_per_s"].push_back(rounded(slice.output_tokens_per_s));
    slices["in_flight"].push_back(rounded(slice.in_flight));
    slices["ttft_s"].push_back(slice.ttft_s < 0 ? json() : rounded(slice.ttft_s));
  }
  json curves = json::object();
  for (const auto& [name, values] : point.curves) {
    for (const float value : values) curves[name].push_back(rounded(value));
  }
  return {{"slices", std::move(slices)}, {"percentile_curves", std::move(curves)}};
}

json to_json(const PointResult& point) {
  json out = {
      {"arrivals", to_json(point.arrivals)},
      {"requests", point.num_requests},
      {"ok", point.num_ok},
      {"errors", errors_to_json(point)},
      {"prompt_tokens", point.prompt_tokens},
      {"cached_prompt_tokens", point.cached_tokens},
      {"output_tokens", point.output_tokens},
      {"tokens_counted_by", point.is_counted_by_server ? "server" : "events"},
      {"tokens_per_event", rounded(point.tokens_per_event)},
      {"window_s", rounded(point.window_s)},
      {"offered_per_s", rounded(point.offered_per_s)},
      {"requests_per_s", figure_json(point.requests_per_s)},
      {"output_tokens_per_s", figure_json(point.output_tokens_per_s)},
      {"total_tokens_per_s", figure_json(point.total_tokens_per_s)},
      {"steady", nullptr},
      {"good_share", figure_json(point.good_share)},
      {"goodput_per_s", figure_json(point.goodput_per_s)},
      {"ttft_s", percentiles_json(point.ttft_s)},
      {"tpot_s", percentiles_json(point.tpot_s)},
      {"itl_s", percentiles_json(point.itl_s)},
      {"e2e_s", percentiles_json(point.e2e_s)},
      {"send_lag_s", percentiles_json(point.send_lag_s)},
      {"concurrency", {{"mean", rounded(point.concurrency_mean)}, {"max", point.concurrency_max}}},
      {"client_us_per_event", rounded(point.client_us_per_event)},
      {"interrupted", point.is_interrupted},
      {"charts", charts_to_json(point)}};
  if (point.steady) {
    out["steady"] = {{"seconds", rounded(point.steady->seconds)},
                     {"requests_per_s", figure_json(point.steady->requests_per_s)},
                     {"output_tokens_per_s", figure_json(point.steady->output_tokens_per_s)}};
  }
  return out;
}

json or_null(const std::optional<double>& value) { return value ? json(*value) : json(); }

json to_json(const LoadResult& result) {
  json workload = json::object();
  for (const auto& [name, value] : result.workload) workload[name] = value;
  json points = json::array();
  for (const PointResult& point : result.points) points.push_back(to_json(point));
  json sweep;
  if (result.sweep_key) {
    sweep = {{"key", *result.sweep_key == SweepKey::rate ? "rate" : "concurrency"},
             {"loads", result.loads},
             {"best", result.best},
             {"capacity_per_s", rounded(result.capacity_per_s)},
             {"sustained", or_null(result.sustained)},
             {"saturated", result.is_saturated}};
  }
  return {{"kind", kLoadResultKind},
          {"schema_version", kLoadSchemaVersion},
          {"started_at", result.started_at},
          {"command_line", result.command_line},
          {"version", result.version},
          {"url", result.url},
          {"model", result.model},
          {"workload", std::move(workload)},
          {"slo",
           {{"ttft_s", or_null(result.slo.ttft_s)},
            {"tpot_s", or_null(result.slo.tpot_s)},
            {"e2e_s", or_null(result.slo.e2e_s)}}},
          {"sweep", std::move(sweep)},
          {"points", std::move(points)}};
}

}  // namespace

std::string json_text(const LoadResult& result) {
  return to_json(result).dump(1, ' ', false, json::error_handler_t::replace) + "\n";
}

}  // namespace gauntlet::load::inline results
