// The cells of a study: what is measured, in order, under which key. A cell is measured once and
// kept; later cells may read earlier ones.
#pragma once
#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "lab/profile/profiler.h"
#include "study/bench/sizes.h"
#include "study/bench/time_budget.h"
#include "study/bench/workbench.h"
#include "study/journal.h"

namespace gauntlet::study {

struct Cell {
  std::string key;    // "layer/3"
  std::string title;  // for the progress line
  CellTime time;
  /// `seconds`: how long to repeat.
  std::function<Expected<nlohmann::json>(Workbench&, const Journal&, double seconds)> measure;
};

/// What is planned, the most important first.
std::vector<Cell> plan_cells(const Ladder& ladder, const Sizes& sizes, lab::ProfileLevel profile);

/// What cells and results call each other's figures by.
namespace keys {
std::string verify(int layer);
std::string layer(int layer);
std::string energy(int layer);
std::string without(const std::string& option);
std::string batch(std::int64_t batch);
std::string context(std::int64_t context, std::int64_t batch);
std::string prompts(std::int64_t length, std::int64_t batch);
std::string precision(const OptionIds& on);
std::string load(double of_saturation);
inline constexpr const char* kTotal = "total";
inline constexpr const char* kSaturation = "saturation";
inline constexpr const char* kRouter = "router";
inline constexpr const char* kTime = "time";
inline constexpr const char* kCounters = "counters";
}  // namespace keys

/// The points of the precision sweep: which of the lossy layer's options are on.
std::vector<OptionIds> precision_points(const Ladder& ladder);

}  // namespace gauntlet::study
