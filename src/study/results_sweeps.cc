// The sweeps, the router and the split of a step as parts of results.json.
#include <algorithm>
#include <nlohmann/json.hpp>

#include "stats/interval_json.h"
#include "study/cells.h"
#include "study/estimates.h"
#include "study/results_parts.h"
#include "study/rules.h"
#include "study/serving.h"

namespace gauntlet::study {
namespace {

using nlohmann::json;

/// Copies why there is no figure; true when there is one.
bool take_gap(const json& cell, json& point) {
  if (is_measured(cell)) return true;
  point["gap"] = cell.is_object() ? cell.at("gap") : json("not measured yet");
  return false;
}

json percent_of_limit(const json& cell, double ms) {
  return cell.at("limit_ms").is_null() ? json()
                                       : json(100 * cell.at("limit_ms").get<double>() / ms);
}

/// Repetitions of a test as time per step and tokens per second.
void add_speed(const json& cell, json& point) {
  const stats::Interval ms = estimate_ms(cell.at("ms"));
  const double tokens = cell.at("tokens"), all = cell.at("batch").get<double>() * tokens;
  point["tpot_ms"] = stats::to_json(ms.times(1 / tokens));
  point["tok_s"] = stats::to_json(stats::rate(1e3 * all, ms));
  point["percent_of_limit"] = percent_of_limit(cell, ms.value);
  point["bound_by"] = cell.at("bound_by");
  point["experts_per_layer"] = cell.at("experts_per_layer");
}

json batch_sweep(const StudyFacts& facts, const Journal& journal) {
  json list = json::array();
  for (const std::int64_t batch : facts.sizes.batches) {
    json point = {{"batch", batch}, {"context", facts.sizes.context}};
    const json cell = journal.at(keys::batch(batch));
    if (take_gap(cell, point)) add_speed(cell, point);
    list.push_back(std::move(point));
  }
  return list;
}

json prompt_sweep(const StudyFacts& facts, const Journal& journal) {
  json list = json::array();
  for (const std::int64_t length : facts.sizes.prompt_lengths) {
    for (const std::int64_t batch : facts.sizes.prompt_batches) {
      json point = {{"length", length}, {"batch", batch}};
      const json cell = journal.at(keys::prompts(length, batch));
      if (take_gap(cell, point)) {
        const stats::Interval ms = estimate_ms(cell.at("ms"));
        const double tokens = static_cast<double>(length * batch);
        point["ttft_ms"] = stats::to_json(ms);
        point["tok_s"] = 1e3 * tokens / ms.value;
        point["percent_of_limit"] = percent_of_limit(cell, ms.value);
      }
      list.push_back(std::move(point));
    }
  }
  return list;
}

json context_sweep(const StudyFacts& facts, const Journal& journal) {
  json list = json::array();
  for (const std::int64_t context : facts.sizes.contexts) {
    for (const std::int64_t batch : facts.sizes.context_batches) {
      json point = {{"context", context}, {"batch", batch}};
      const json cell = journal.at(keys::context(context, batch));
      if (take_gap(cell, point)) {
        const auto ms = cell.at("ms").get<std::vector<double>>();
        point["p50_ms"] = percentile(ms, 0.5);
        point["p95_ms"] = percentile(ms, 0.95);
        point["steps"] = ms.size();
      }
      list.push_back(std::move(point));
    }
  }
  return list;
}

json precision_sweep(const StudyFacts& facts, const Journal& journal) {
  json list = json::array();
  for (const OptionIds& on : precision_points(facts.ladder)) {
    json point = {{"on", on}};
    const json cell = journal.at(keys::precision(on));
    if (take_gap(cell, point)) {
      add_speed(cell, point);
      point["perplexity"] = cell.at("perplexity");
      point["scored_tokens"] = cell.at("scored_tokens");
      point["weight_bytes"] = cell.at("weight_bytes");
    }
    list.push_back(std::move(point));
  }
  return list;
}

json load_sweep(const StudyFacts& facts, const Journal& journal) {
  json list = json::array();
  for (const double load : facts.sizes.loads) {
    json point = {{"of_saturation", load}};
    const json cell = journal.at(keys::load(load));
    if (take_gap(cell, point)) point.update(cell);
    list.push_back(std::move(point));
  }
  return list;
}

}  // namespace

json sweeps_to_json(const StudyFacts& facts, const Journal& journal) {
  return {
      {"batch", batch_sweep(facts, journal)},        {"prompts", prompt_sweep(facts, journal)},
      {"context", context_sweep(facts, journal)},    {"precision", precision_sweep(facts, journal)},
      {"saturation", journal.at(keys::kSaturation)}, {"load", load_sweep(facts, journal)}};
}

json router_to_json(const Journal& journal) { return journal.at(keys::kRouter); }

json time_to_json(const Journal& journal) {
  const json splits = journal.at(keys::kTime);
  if (!splits.is_array()) return splits;
  json list = json::array();
  for (json split : splits) {
    std::vector<StepPart> parts;
    for (json& part : split.at("parts")) {
      const bool limited = !part.at("limit_us").is_null();
      part["percent_of_limit"] =
          limited ? json(100 * part.at("limit_us").get<double>() / part.at("us").get<double>())
                  : json();
      parts.push_back({.name = part.at("name"),
                       .us = part.at("us"),
                       .floor_us = limited ? part.at("limit_us").get<double>() : 0,
                       .bound_by = limited ? part.at("bound_by").get<std::string>() : ""});
    }
    const Diagnosis found = diagnose(parts, split.at("idle_us"), split.at("host_us"));
    split["bottleneck"] = {{"kind", name_of(found.bottleneck)},
                           {"part", found.part},
                           {"sentence", found.sentence},
                           {"targets", found.targets}};
    list.push_back(std::move(split));
  }
  return list;
}

}  // namespace gauntlet::study
