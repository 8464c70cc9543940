// The sweeps and the split of a step as parts of a study's results.
#include <vector>

#include "study/cells.h"
#include "study/fidelity/rules.h"
#include "study/results/assemble_parts.h"
#include "study/results/estimates.h"
#include "study/serving.h"

namespace gauntlet::study::inline results {
namespace {

std::optional<double> percent_of(const std::optional<double>& limit, double measured) {
  if (!limit) return {};
  return 100 * *limit / measured;
}

/// Repetitions of a test as time per step and tokens per second.
StepSpeed step_speed(const RepeatedTest& test) {
  const stats::Interval ms = estimate_ms(test.ms);
  const auto tokens = static_cast<double>(test.tokens);
  return {.tpot_ms = ms.times(1 / tokens),
          .tok_s = stats::rate(1e3 * (static_cast<double>(test.batch) * tokens), ms),
          .percent_of_limit = percent_of(test.limit_ms, ms.value),
          .bound_by = test.bound_by,
          .experts_per_layer = test.experts_per_layer};
}

std::vector<BatchPoint> batch_sweep(const StudyFacts& facts, CellReader& cells) {
  std::vector<BatchPoint> points;
  for (const std::int64_t batch : facts.sizes.batches) {
    const auto cell = cells.read<RepeatedTest>(keys::batch(batch));
    points.push_back({.batch = batch,
                      .context = facts.sizes.context,
                      .speed = cell.then(step_speed).or_not_yet()});
  }
  return points;
}

std::vector<PromptPoint> prompt_sweep(const StudyFacts& facts, CellReader& cells) {
  std::vector<PromptPoint> points;
  for (const std::int64_t length : facts.sizes.prompt_lengths) {
    for (const std::int64_t batch : facts.sizes.prompt_batches) {
      const auto speed = [&](const RepeatedTest& test) {
        const stats::Interval ms = estimate_ms(test.ms);
        return PromptSpeed{.ttft_ms = ms,
                           .tok_s = 1e3 * static_cast<double>(length * batch) / ms.value,
                           .percent_of_limit = percent_of(test.limit_ms, ms.value)};
      };
      const auto cell = cells.read<RepeatedTest>(keys::prompts(length, batch));
      points.push_back({.length = length, .batch = batch, .speed = cell.then(speed).or_not_yet()});
    }
  }
  return points;
}

std::vector<ContextPoint> context_sweep(const StudyFacts& facts, CellReader& cells) {
  const auto percentiles = [](const StepSamples& steps) {
    return StepPercentiles{.p50_ms = percentile(steps.ms, 0.5),
                           .p95_ms = percentile(steps.ms, 0.95),
                           .steps = std::ssize(steps.ms)};
  };
  std::vector<ContextPoint> points;
  for (const std::int64_t context : facts.sizes.contexts) {
    for (const std::int64_t batch : facts.sizes.context_batches) {
      const auto cell = cells.read<StepSamples>(keys::context(context, batch));
      points.push_back(
          {.context = context, .batch = batch, .steps = cell.then(percentiles).or_not_yet()});
    }
  }
  return points;
}

std::vector<PrecisionPoint> precision_sweep(const StudyFacts& facts, CellReader& cells) {
  const auto figures = [](const PrecisionTest& test) {
    return PrecisionFigures{
        .speed = step_speed(test.speed), .score = test.score, .weight_bytes = test.weight_bytes};
  };
  std::vector<PrecisionPoint> points;
  for (const OptionIds& on : precision_points(facts.ladder)) {
    const auto cell = cells.read<PrecisionTest>(keys::precision(on));
    points.push_back({.on = on, .figures = cell.then(figures).or_not_yet()});
  }
  return points;
}

std::vector<LoadPoint> load_sweep(const StudyFacts& facts, CellReader& cells) {
  const auto figures = [](const LoadTest& test) { return test.figures; };
  std::vector<LoadPoint> points;
  for (const double load : facts.sizes.loads) {
    const auto cell = cells.read<LoadTest>(keys::load(load));
    points.push_back({.of_saturation = load, .figures = cell.then(figures).or_not_yet()});
  }
  return points;
}

TimeResult time_result(const TimeSplit& split) {
  TimeResult result{.step = {.batch = split.batch,
                             .context = split.context,
                             .steps = split.steps,
                             .parts = {},
                             .idle_us = split.idle_us,
                             .host_us = split.host_us,
                             .step_us = split.step_us,
                             .unwatched_step_us = split.unwatched_step_us},
                    .bottleneck = diagnose(split.parts, split.idle_us, split.host_us)};
  for (const StepPart& part : split.parts) {
    LimitedPart limited{.part = part, .percent_of_limit = {}};
    if (!part.bound_by.empty()) limited.percent_of_limit = 100 * part.floor_us / part.us;
    result.step.parts.push_back(std::move(limited));
  }
  return result;
}

}  // namespace

Sweeps sweeps_of(const StudyFacts& facts, CellReader& cells) {
  return {.batch = batch_sweep(facts, cells),
          .prompts = prompt_sweep(facts, cells),
          .context = context_sweep(facts, cells),
          .precision = precision_sweep(facts, cells),
          .saturation = cells.read<ServeFigures>(keys::kSaturation),
          .load = load_sweep(facts, cells)};
}

Measured<std::vector<TimeResult>> time_of(CellReader& cells) {
  return cells.read<TimeSplits>(keys::kTime).then([](const TimeSplits& splits) {
    std::vector<TimeResult> results;
    for (const TimeSplit& split : splits) results.push_back(time_result(split));
    return results;
  });
}

}  // namespace gauntlet::study::inline results
