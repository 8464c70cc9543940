#include "study/results/findings.h"

#include <fmt/format.h>

#include <map>

namespace gauntlet::study::inline results {
namespace {

using Sentences = std::vector<std::string>;

std::string with_interval(const stats::Interval& ratio) {
  return fmt::format("{:.2f}× [{:.2f}, {:.2f}]", ratio.value, ratio.lo, ratio.hi);
}

std::string layer_name(const LayerResult& layer) {
  return fmt::format("Layer {} ({})", layer.index, layer.name);
}

void say_checks(const StudyResults& results, Sentences& out) {
  int verified = 0, judged = 0;
  for (const LayerResult& layer : results.layers) {
    if (!layer.verification) continue;
    ++judged;
    if (layer.verification->verified) {
      ++verified;
    } else {
      out.push_back(
          fmt::format("{} is not verified, {}.", layer_name(layer), layer.verification->sentence));
    }
  }
  if (judged > 0 && verified == judged) {
    out.push_back(fmt::format("All {} layers are verified against the layer before.", judged));
  }
}

void say_total(const StudyResults& results, Sentences& out) {
  constexpr const char* kAlone = "decode_1";
  if (!results.total) return;
  const Figure* figure = results.total->engine.find(kAlone);
  if (figure == nullptr) return;
  std::string sentence;
  for (const WorkloadGain& workload : results.total->gain.workloads) {
    if (workload.name != kAlone) continue;
    sentence = fmt::format("The whole stack decodes {:.0f} tok/s at batch 1, {} the baseline's",
                           figure->tok_s.value, with_interval(workload.gain.ratio));
  }
  if (sentence.empty()) return;
  if (figure->percent_of_limit) {
    sentence +=
        fmt::format(", at {:.0f}% of what {} allows", *figure->percent_of_limit, figure->bound_by);
  }
  out.push_back(sentence + ".");
}

void say_layers(const StudyResults& results, Sentences& out) {
  const LayerResult* best = nullptr;
  for (const LayerResult& layer : results.layers) {
    if (!layer.gain) continue;
    const auto& [ratio, label] = layer.gain->all;
    if (label != stats::Gain::gain) {
      out.push_back(fmt::format("{}: {}, {}.", layer_name(layer),
                                label == stats::Gain::loss ? "a loss" : "no gain",
                                with_interval(ratio)));
    } else if (best == nullptr || ratio.value > best->gain->all.ratio.value) {
      best = &layer;
    }
  }
  if (best != nullptr) {
    out.push_back(fmt::format("{} paid most: {} over the layer before.", layer_name(*best),
                              with_interval(best->gain->all.ratio)));
  }
}

void say_company(const StudyResults& results, Sentences& out) {
  const OptionWorth* best = nullptr;
  std::map<Sign, int> signs;
  int judged = 0;
  const auto ratio = [](const OptionWorth& option) { return option.worth->gain.all.ratio; };
  for (const OptionWorth& option : results.leave_one_out) {
    if (!option.worth) continue;
    if (best == nullptr || ratio(option).value > ratio(*best).value) best = &option;
    if (!option.worth->sign) continue;
    ++judged;
    ++signs[option.worth->sign->sign];
  }
  if (best == nullptr) return;
  out.push_back(
      fmt::format("In company {} is worth most: the whole stack is {} of the stack "
                  "without it.",
                  best->option, with_interval(ratio(*best))));
  std::string sentence =
      fmt::format("For {} of {} options the worth in company has the sign of their layer's gain",
                  signs[Sign::same], judged);
  if (signs[Sign::undecided] > 0) {
    sentence += fmt::format("; for {} one of the two intervals holds 1", signs[Sign::undecided]);
  }
  if (signs[Sign::opposite] > 0) {
    sentence += fmt::format("; for {} the signs are opposite", signs[Sign::opposite]);
  }
  out.push_back(sentence +
                (signs[Sign::same] == judged ? "." : "; what each is worth in company says why."));
}

void say_sweeps(const StudyResults& results, Sentences& out) {
  const auto& batches = results.sweeps.batch;
  if (batches.size() > 1 && batches.front().speed && batches.back().speed) {
    const double one = batches.front().speed->tok_s.value;
    const double many = batches.back().speed->tok_s.value;
    out.push_back(fmt::format("From batch {} to {} throughput grows {:.1f}-fold, to {:.0f} tok/s.",
                              batches.front().batch, batches.back().batch, many / one, many));
  }
  const auto& loads = results.sweeps.load;
  if (loads.size() > 1 && loads.front().figures && loads.back().figures) {
    out.push_back(
        fmt::format("At {:.0f}% of saturation 95% of requests have their first token "
                    "within {:.0f} ms, at {:.0f}% within {:.0f} ms.",
                    100 * loads.front().of_saturation, loads.front().figures->served.ttft_ms.p95,
                    100 * loads.back().of_saturation, loads.back().figures->served.ttft_ms.p95));
  }
}

void say_energy(const StudyResults& results, Sentences& out) {
  const EnergyPoint *first = nullptr, *last = nullptr;
  for (const LayerResult& layer : results.layers) {
    if (!layer.energy || layer.energy->points.front().name != "decode_1") continue;
    last = &layer.energy->points.front();
    if (first == nullptr) first = last;
  }
  if (first == last) return;
  out.push_back(fmt::format("A token at batch 1 takes {:.3g} J, {:.3g} J in the baseline.",
                            last->joules_per_token, first->joules_per_token));
}

void say_rest(const StudyResults& results, Sentences& out) {
  if (results.router) {
    const auto layer = static_cast<std::size_t>(results.router->most_uneven_layer);
    out.push_back(
        fmt::format("The router is most uneven in model layer {}: its busiest expert gets "
                    "{:.1f} times the mean load.",
                    layer, results.router->imbalance[layer]));
  }
  if (results.time && !results.time->empty()) {
    const Diagnosis& next = results.time->front().bottleneck;
    out.push_back(fmt::format("Next bottleneck at batch 1: {}; {}.", name_of(next.bottleneck),
                              next.sentence));
  }
}

void say_left_out(const StudyResults& results, Sentences& out) {
  if (results.cells.left_out == 0) return;
  out.push_back(
      fmt::format("{} of {} cells were left out, because the time of a quick study was "
                  "used up.",
                  results.cells.left_out, results.cells.planned));
}

void say_dropped(const StudyResults& results, Sentences& out) {
  std::int64_t dropped = 0;
  const auto add = [&](const Gain& gain) {
    if (gain.conditions) dropped += gain.conditions->dropped_blocks;
  };
  for (const LayerResult& layer : results.layers) {
    if (layer.gain) add(*layer.gain);
  }
  for (const OptionWorth& option : results.leave_one_out) {
    if (option.worth) add(option.worth->gain);
  }
  if (results.total) add(results.total->gain);
  if (dropped > 0) {
    out.push_back(fmt::format(
        "{} blocks were dropped, because the GPU was slowed by its temperature.", dropped));
  }
}

}  // namespace

std::vector<std::string> findings_of(const StudyResults& results) {
  Sentences sentences;
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

}  // namespace gauntlet::study::inline results
