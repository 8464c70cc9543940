// What a study found, one sentence each, out of results.json and by rule.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "stats/interval_json.h"
#include "study/results.h"
#include "study/results_parts.h"

namespace gauntlet::study {
namespace {

using nlohmann::json;

std::string ratio(const json& estimate) {
  const stats::Interval known = stats::interval_from_json(estimate);
  return fmt::format("{:.2f}× [{:.2f}, {:.2f}]", known.value, known.lo, known.hi);
}

std::string layer_name(const json& layer) {
  return fmt::format("Layer {} ({})", layer.at("index").get<int>(),
                     layer.at("name").get<std::string>());
}

bool has_gain(const json& entry) { return entry.contains("gain"); }
double gain_value(const json& entry) { return entry.at("gain").at("ratio").at("value"); }

void say_checks(const json& results, std::vector<std::string>& out) {
  int verified = 0, judged = 0;
  for (const json& layer : results.at("layers")) {
    const json verification = layer.value("verification", json());
    if (!is_measured(verification)) continue;
    ++judged;
    if (verification.at("verified")) {
      ++verified;
    } else {
      out.push_back(fmt::format("{} is not verified, {}.", layer_name(layer),
                                verification.at("sentence").get<std::string>()));
    }
  }
  if (judged > 0 && verified == judged) {
    out.push_back(fmt::format("All {} layers are verified against the layer before.", judged));
  }
}

void say_total(const json& results, std::vector<std::string>& out) {
  const json& total = results.at("total");
  if (!is_measured(total)) return;
  for (const json& figure : total.at("figures")) {
    if (figure.at("name") != "decode_1") continue;
    std::string sentence;
    for (const json& gain : total.at("gain").at("workloads")) {
      if (gain.at("name") == "decode_1") {
        sentence =
            fmt::format("The whole stack decodes {:.0f} tok/s at batch 1, {} the baseline's",
                        figure.at("tok_s").at("value").get<double>(), ratio(gain.at("ratio")));
      }
    }
    if (!figure.at("percent_of_limit").is_null()) {
      sentence +=
          fmt::format(", at {:.0f}% of what {} allows", figure.at("percent_of_limit").get<double>(),
                      figure.at("bound_by").get<std::string>());
    }
    out.push_back(sentence + ".");
  }
}

void say_layers(const json& results, std::vector<std::string>& out) {
  const json* best = nullptr;
  for (const json& layer : results.at("layers")) {
    if (!has_gain(layer)) continue;
    if (layer.at("gain").at("label") != "gain") {
      out.push_back(fmt::format("{}: {}, {}.", layer_name(layer),
                                layer.at("gain").at("label") == "loss" ? "a loss" : "no gain",
                                ratio(layer.at("gain").at("ratio"))));
    } else if (best == nullptr || gain_value(layer) > gain_value(*best)) {
      best = &layer;
    }
  }
  if (best != nullptr) {
    out.push_back(fmt::format("{} paid most: {} over the layer before.", layer_name(*best),
                              ratio(best->at("gain").at("ratio"))));
  }
}

void say_company(const json& results, std::vector<std::string>& out) {
  const json* best = nullptr;
  std::map<std::string, int> signs;
  int judged = 0;
  for (const json& entry : results.at("leave_one_out")) {
    if (!has_gain(entry)) continue;
    if (best == nullptr || gain_value(entry) > gain_value(*best)) best = &entry;
    if (!entry.contains("sign")) continue;
    ++judged;
    ++signs[entry.at("sign").get<std::string>()];
  }
  if (best == nullptr) return;
  out.push_back(
      fmt::format("In company {} is worth most: the whole stack is {} of the stack "
                  "without it.",
                  best->at("option").get<std::string>(), ratio(best->at("gain").at("ratio"))));
  std::string sentence =
      fmt::format("For {} of {} options the worth in company has the sign of their layer's gain",
                  signs["same"], judged);
  if (signs["undecided"] > 0) {
    sentence += fmt::format("; for {} one of the two intervals holds 1", signs["undecided"]);
  }
  if (signs["opposite"] > 0) {
    sentence += fmt::format("; for {} the signs are opposite", signs["opposite"]);
  }
  out.push_back(sentence +
                (signs["same"] == judged ? "." : "; what each is worth in company says why."));
}

void say_sweeps(const json& results, std::vector<std::string>& out) {
  const json& batches = results.at("sweeps").at("batch");
  const auto known = [](const json& point) { return point.contains("tok_s"); };
  if (batches.size() > 1 && known(batches.front()) && known(batches.back())) {
    const double one = batches.front().at("tok_s").at("value");
    const double many = batches.back().at("tok_s").at("value");
    out.push_back(fmt::format("From batch {} to {} throughput grows {:.1f}-fold, to {:.0f} tok/s.",
                              batches.front().at("batch").get<int>(),
                              batches.back().at("batch").get<int>(), many / one, many));
  }
  const json& loads = results.at("sweeps").at("load");
  if (loads.size() > 1 && loads.front().contains("ttft_ms") && loads.back().contains("ttft_ms")) {
    out.push_back(
        fmt::format("At {:.0f}% of saturation 95% of requests have their first token "
                    "within {:.0f} ms, at {:.0f}% within {:.0f} ms.",
                    100 * loads.front().at("of_saturation").get<double>(),
                    loads.front().at("ttft_ms").at("p95").get<double>(),
                    100 * loads.back().at("of_saturation").get<double>(),
                    loads.back().at("ttft_ms").at("p95").get<double>()));
  }
}

void say_energy(const json& results, std::vector<std::string>& out) {
  const json *first = nullptr, *last = nullptr;
  for (const json& layer : results.at("layers")) {
    if (!layer.contains("energy") || !is_measured(layer.at("energy"))) continue;
    const json& point = layer.at("energy").at("points").front();
    if (point.at("name") != "decode_1") continue;
    if (first == nullptr) first = &point;
    last = &point;
  }
  if (first == last) return;
  out.push_back(fmt::format("A token at batch 1 takes {:.3g} J, {:.3g} J in the baseline.",
                            last->at("joules_per_token").get<double>(),
                            first->at("joules_per_token").get<double>()));
}

void say_left_out(const json& results, std::vector<std::string>& out) {
  const auto left_out = results.at("cells").value("left_out", 0);
  if (left_out == 0) return;
  out.push_back(
      fmt::format("{} of {} cells were left out, because the time of a quick study was "
                  "used up.",
                  left_out, results.at("cells").at("planned").get<int>()));
}

void say_rest(const json& results, std::vector<std::string>& out) {
  const json& router = results.at("router");
  if (is_measured(router)) {
    const int layer = router.at("most_uneven_layer");
    out.push_back(
        fmt::format("The router is most uneven in model layer {}: its busiest expert gets "
                    "{:.1f} times the mean load.",
                    layer, router.at("imbalance").at(layer).get<double>()));
  }
  const json& time = results.at("time");
  if (time.is_array() && !time.empty()) {
    const json& next = time.front().at("bottleneck");
    out.push_back(fmt::format("Next bottleneck at batch 1: {}; {}.",
                              next.at("kind").get<std::string>(),
                              next.at("sentence").get<std::string>()));
  }
}

void say_dropped(const json& results, std::vector<std::string>& out) {
  std::int64_t dropped = 0;
  const auto add = [&](const json& entry) {
    if (!is_measured(entry) || !has_gain(entry)) return;
    const json& conditions = entry.at("gain").at("conditions");
    if (conditions.is_object()) dropped += conditions.at("dropped_blocks").get<std::int64_t>();
  };
  for (const json& layer : results.at("layers")) add(layer);
  for (const json& entry : results.at("leave_one_out")) add(entry);
  add(results.at("total"));
  if (dropped > 0) {
    out.push_back(fmt::format(
        "{} blocks were dropped, because the GPU was slowed by its temperature.", dropped));
  }
}

}  // namespace

std::vector<std::string> findings_of(const json& results) {
  std::vector<std::string> sentences;
  say_checks(results, sentences);
  say_total(results, sentences);
  say_layers(results, sentences);
  say_company(results, sentences);
  say_sweeps(results, sentences);
  say_energy(results, sentences);
  say_rest(results, sentences);
  say_left_out(results, sentences);
  say_dropped(results, sentences);
  return sentences;
}

}  // namespace gauntlet::study
