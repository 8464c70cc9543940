// The sweeps of a study: points of the whole stack, each with its figures or with why it has none.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "stats/interval.h"
#include "study/bench/measurements.h"
#include "study/ladder.h"
#include "study/results/measured.h"
#include "study/serving.h"

namespace gauntlet::study::inline results {

struct StepSpeed {
  stats::Interval tpot_ms;
  stats::Interval tok_s;
  std::optional<double> percent_of_limit;
  std::string bound_by;
  double experts_per_layer = 0;
};
struct BatchPoint {
  std::int64_t batch = 0;
  std::int64_t context = 0;
  Measured<StepSpeed> speed;
};

struct PromptSpeed {
  stats::Interval ttft_ms;
  double tok_s = 0;
  std::optional<double> percent_of_limit;
};
struct PromptPoint {
  std::int64_t length = 0;
  std::int64_t batch = 0;
  Measured<PromptSpeed> speed;
};

struct StepPercentiles {
  double p50_ms = 0;
  double p95_ms = 0;
  std::int64_t steps = 0;
};
struct ContextPoint {
  std::int64_t context = 0;
  std::int64_t batch = 0;
  Measured<StepPercentiles> steps;
};

struct PrecisionFigures {
  StepSpeed speed;
  TextScore score;
  std::int64_t weight_bytes = 0;
};
struct PrecisionPoint {
  OptionIds on;
  Measured<PrecisionFigures> figures;
};

struct LoadPoint {
  double of_saturation = 0;
  Measured<LoadFigures> figures;
};

struct Sweeps {
  std::vector<BatchPoint> batch;
  std::vector<PromptPoint> prompts;
  std::vector<ContextPoint> context;
  std::vector<PrecisionPoint> precision;
  Measured<ServeFigures> saturation;
  std::vector<LoadPoint> load;
};

}  // namespace gauntlet::study::inline results
