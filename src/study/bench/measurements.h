// What the cells of a study do, one function per kind of cell. Each returns what the journal keeps:
// times as they were taken, so that what they mean can be worked out again.
#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "lab/profile/profiler.h"
#include "study/bench/duel.h"
#include "study/bench/sizes.h"
#include "study/bench/workbench.h"
#include "study/fidelity/layer_check.h"
#include "study/fidelity/router.h"
#include "study/journal.h"
#include "study/serving.h"
#include "study/time_split.h"

namespace gauntlet::study::inline bench {

/// A test on one stack, again and again.
struct RepeatedTest {
  std::int64_t batch = 0;
  std::int64_t context = 0;
  std::int64_t tokens = 0;
  std::vector<double> ms;          // of each repetition
  std::optional<double> limit_ms;  // none without ceilings
  std::string bound_by;            // empty likewise
  double experts_per_layer = 0;    // that a step's tokens chose
};
struct PrecisionTest {
  RepeatedTest speed;
  TextScore score;
  OptionIds on;
  std::int64_t weight_bytes = 0;
};
struct StepSamples {
  std::int64_t context = 0;
  std::int64_t batch = 0;
  std::vector<double> ms;  // of each step
};
struct LoadTest {
  double of_saturation = 0;
  LoadFigures figures;
};
struct CounterValues {
  std::int64_t steps = 0;
  std::map<std::string, double> counters;
};

struct Sides {
  OptionIds a, b;
};
Expected<Duel> measure_duel(Workbench& bench, const Sizes& sizes, const Sides& sides,
                            double seconds);
/// Requests that come faster than they can be served, under the policies of a and b.
Expected<ServeDuel> measure_serve_duel(Workbench& bench, const Journal& journal, const Sizes& sizes,
                                       const Sides& sides, double seconds);
/// Requests per second that the full stack serves at most.
Expected<ServeFigures> measure_saturation(Workbench& bench, const Sizes& sizes);

Expected<RepeatedTest> measure_batch(Workbench& bench, const Sizes& sizes, std::int64_t batch,
                                     double seconds);
struct Prompts {
  std::int64_t length = 0;
  std::int64_t batch = 1;
};
/// The time to the first token of all of them.
Expected<RepeatedTest> measure_prompts(Workbench& bench, const Sizes& sizes, const Prompts& prompts,
                                       double seconds);
/// Single steps after such prompts. An error where they do not fit model or memory.
Expected<StepSamples> measure_context(Workbench& bench, const Sizes& sizes, const Prompts& contexts,
                                      double seconds);
Expected<PrecisionTest> measure_precision(Workbench& bench, const Sizes& sizes, const OptionIds& on,
                                          double seconds);
Expected<LoadTest> measure_load(Workbench& bench, const Journal& journal, const Sizes& sizes,
                                double of_saturation, double seconds);
Expected<RouterLoads> measure_router(Workbench& bench, const Sizes& sizes);
Expected<TimeSplits> measure_time(Workbench& bench, const Sizes& sizes);
/// Hardware counters of decode steps of the full stack.
Expected<CounterValues> measure_counters(Workbench& bench, const Sizes& sizes,
                                         lab::ProfileLevel level);

}  // namespace gauntlet::study::inline bench
