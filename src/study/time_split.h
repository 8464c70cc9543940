// Where a step's time goes. On a CPU a probe reads the clock between the halves of each layer; on a
// GPU the trace of its kernels tells.
#pragma once
#include <cstdint>
#include <vector>

#include "study/bench/workbench.h"
#include "study/fidelity/rules.h"

namespace gauntlet::study {

template <class Part>
struct StepTimes {
  std::int64_t batch = 1;
  std::int64_t context = 0;
  std::int64_t steps = 0;
  std::vector<Part> parts;       // at least one
  double idle_us = 0;            // between kernels, on a GPU
  double host_us = 0;            // outside the model
  double step_us = 0;            // of a watched step; the parts, idle and host add up to it
  double unwatched_step_us = 0;  // what the same step takes when nobody looks
};
using TimeSplit = StepTimes<StepPart>;
using TimeSplits = std::vector<TimeSplit>;

/// Decodes `steps` steps of a batch after a context, and somewhat more than as many before.
struct SplitTest {
  std::int64_t batch = 1;
  std::int64_t context = 64;
  std::int64_t steps = 32;
};
Expected<TimeSplit> split_time(const Workbench& bench, engine::Executor& executor,
                               const SplitTest& test);

}  // namespace gauntlet::study
