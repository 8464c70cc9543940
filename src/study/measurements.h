// What the cells of a study do, one function per kind of cell. Each returns the JSON that the
// journal keeps: times as they were taken, so that what they mean can be worked out again.
#pragma once
#include <nlohmann/json_fwd.hpp>

#include "lab/profile/profiler.h"
#include "study/journal.h"
#include "study/sizes.h"
#include "study/workbench.h"

namespace gauntlet::study {

using CellValue = Expected<nlohmann::json>;

struct Sides {
  OptionIds a, b;
};
CellValue measure_duel(Workbench& bench, const Sizes& sizes, const Sides& sides, double seconds);
/// Requests that come faster than they can be served, under the policies of a and b.
CellValue measure_serve_duel(Workbench& bench, const Journal& journal, const Sizes& sizes,
                             const Sides& sides, double seconds);
/// Requests per second that the full stack serves at most.
CellValue measure_saturation(Workbench& bench, const Sizes& sizes);

CellValue measure_batch(Workbench& bench, const Sizes& sizes, std::int64_t batch, double seconds);
struct Prompts {
  std::int64_t length = 0;
  std::int64_t batch = 1;
};
/// The time to the first token of all of them.
CellValue measure_prompts(Workbench& bench, const Sizes& sizes, const Prompts& prompts,
                          double seconds);
/// Single steps after such prompts. An error where they do not fit model or memory.
CellValue measure_context(Workbench& bench, const Sizes& sizes, const Prompts& contexts,
                          double seconds);
CellValue measure_precision(Workbench& bench, const Sizes& sizes, const OptionIds& on,
                            double seconds);
CellValue measure_load(Workbench& bench, const Journal& journal, const Sizes& sizes,
                       double of_saturation, double seconds);
CellValue measure_router(Workbench& bench, const Sizes& sizes);
CellValue measure_time(Workbench& bench, const Sizes& sizes);
/// Hardware counters of decode steps of the full stack.
CellValue measure_counters(Workbench& bench, const Sizes& sizes, lab::ProfileLevel level);

}  // namespace gauntlet::study
