#include "study/cells.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "study/measurements.h"

namespace gauntlet::study {
namespace keys {

std::string verify(int layer) { return fmt::format("verify/{}", layer); }
std::string layer(int layer) { return fmt::format("layer/{}", layer); }
std::string without(const std::string& option) { return "without/" + option; }
std::string batch(std::int64_t batch) { return fmt::format("batch/{}", batch); }
std::string context(std::int64_t context, std::int64_t batch) {
  return fmt::format("context/{}/{}", context, batch);
}
std::string prompts(std::int64_t length, std::int64_t batch) {
  return fmt::format("prompts/{}/{}", length, batch);
}
std::string precision(const OptionIds& on) {
  return fmt::format("precision/{}", fmt::join(on, "+"));
}
std::string load(double of_saturation) { return fmt::format("load/{:.2f}", of_saturation); }

}  // namespace keys

namespace {

/// Collects cells; those with a weight share the time budget.
class Planner {
 public:
  explicit Planner(const Sizes& sizes) : sizes_(sizes) {}

  using Timed = std::function<CellValue(Workbench&, const Journal&, double seconds)>;

  void add(std::string key, std::string title, double weight, Timed measure) {
    planned_.push_back({std::move(key), std::move(title), weight, std::move(measure)});
  }
  void add_fixed(std::string key, std::string title, double seconds,
                 std::function<CellValue(Workbench&)> measure) {
    planned_.push_back({std::move(key), std::move(title), 0,
                        [measure = std::move(measure)](Workbench& bench, const Journal&, double) {
                          return measure(bench);
                        },
                        seconds});
  }

  std::vector<Cell> cells() const {
    double weights = 0;
    for (const Planned& one : planned_) weights += one.weight;
    std::vector<Cell> list;
    for (const Planned& one : planned_) {
      const double seconds =
          one.weight > 0 ? sizes_.budget_seconds * one.weight / weights : one.seconds;
      list.push_back({one.key, one.title, seconds,
                      [measure = one.measure, seconds](Workbench& bench, const Journal& journal) {
                        return measure(bench, journal, seconds);
                      }});
    }
    return list;
  }

 private:
  struct Planned {
    std::string key, title;
    double weight;
    Timed measure;
    double seconds = 0;
  };
  const Sizes& sizes_;
  std::vector<Planned> planned_;
};

// How the time is shared out: a duel of layers is what a study is for.
constexpr double kLayerWeight = 3, kWithoutWeight = 1.5, kTotalWeight = 2, kServeWeight = 3,
                 kSweepWeight = 0.5, kPrecisionWeight = 1, kLoadWeight = 1.5;

void add_layers(Planner& plan, const Ladder& ladder, const Sizes& sizes) {
  for (int layer = 0; layer < std::ssize(ladder.layers); ++layer) {
    const std::string name = fmt::format("layer {}, {}", layer, ladder.layers[layer].name);
    if (!ladder.layers[layer].absent.empty()) continue;
    const OptionIds on = ladder.up_to(layer);
    const bool served = ladder.stage_of(layer) == Stage::serving;
    plan.add_fixed(keys::verify(layer), name + ": verifying", 2, [=](Workbench& bench) {
      return served ? measure_served_truth(bench, sizes, on) : measure_truth(bench, sizes, on);
    });
    if (layer == 0) continue;
    const Sides sides{ladder.up_to(layer_before(ladder, layer)), on};
    if (served) {
      plan.add_fixed(keys::kSaturation, "requests per second at most", 2,
                     [=](Workbench& bench) { return measure_saturation(bench, sizes); });
      plan.add(keys::layer(layer), name + ": in turns with the layer before", kServeWeight,
               [=](Workbench& bench, const Journal& journal, double seconds) {
                 return measure_serve_duel(bench, journal, sizes, sides, seconds);
               });
    } else {
      plan.add(keys::layer(layer), name + ": in turns with the layer before", kLayerWeight,
               [=](Workbench& bench, const Journal&, double seconds) {
                 return measure_duel(bench, sizes, sides, seconds);
               });
    }
  }
  plan.add(keys::kTotal, "the whole stack in turns with the baseline", kTotalWeight,
           [=, sides = Sides{{}, ladder.all()}](Workbench& bench, const Journal&, double seconds) {
             return measure_duel(bench, sizes, sides, seconds);
           });
}

void add_without(Planner& plan, const Ladder& ladder, const Sizes& sizes) {
  for (const Option& option : ladder.options) {
    Sides sides{ladder.all(), ladder.all()};
    sides.a.erase(option.id);
    const std::string title = fmt::format("the whole stack without {}", option.id);
    plan.add(keys::without(option.id), title, kWithoutWeight,
             [=, served = option.stage == Stage::serving](Workbench& bench, const Journal& journal,
                                                          double seconds) {
               return served ? measure_serve_duel(bench, journal, sizes, sides, seconds)
                             : measure_duel(bench, sizes, sides, seconds);
             });
  }
}

void add_sweeps(Planner& plan, const Ladder& ladder, const Sizes& sizes) {
  for (const std::int64_t batch : sizes.batches) {
    plan.add(keys::batch(batch), fmt::format("batch {}", batch), kSweepWeight,
             [=](Workbench& bench, const Journal&, double seconds) {
               return measure_batch(bench, sizes, batch, seconds);
             });
  }
  for (const std::int64_t length : sizes.prompt_lengths) {
    for (const std::int64_t batch : sizes.prompt_batches) {
      plan.add(keys::prompts(length, batch), fmt::format("{} prompts of {}", batch, length),
               kSweepWeight, [=](Workbench& bench, const Journal&, double seconds) {
                 return measure_prompts(bench, sizes, {length, batch}, seconds);
               });
    }
  }
  for (const std::int64_t context : sizes.contexts) {
    for (const std::int64_t batch : sizes.context_batches) {
      plan.add(keys::context(context, batch), fmt::format("context {} x {}", context, batch),
               kSweepWeight, [=](Workbench& bench, const Journal&, double seconds) {
                 return measure_context(bench, sizes, {context, batch}, seconds);
               });
    }
  }
  for (const OptionIds& on : precision_points(ladder)) {
    plan.add(keys::precision(on), fmt::format("precision: {}", fmt::join(on, ", ")),
             kPrecisionWeight, [=](Workbench& bench, const Journal&, double seconds) {
               return measure_precision(bench, sizes, on, seconds);
             });
  }
  for (const double load : sizes.loads) {
    plan.add(keys::load(load), fmt::format("{:.2f} of saturation", load), kLoadWeight,
             [=](Workbench& bench, const Journal& journal, double seconds) {
               return measure_load(bench, journal, sizes, load, seconds);
             });
  }
}

}  // namespace

int layer_before(const Ladder& ladder, int layer) {
  int before = layer - 1;
  while (before > 0 && !ladder.layers[before].absent.empty()) --before;
  return before;
}

std::vector<OptionIds> precision_points(const Ladder& ladder) {
  const auto lossy = std::ranges::find_if(ladder.options, &Option::is_lossy);
  if (lossy == ladder.options.end()) return {};
  std::vector<OptionIds> points = {{}};
  for (const Option* option : ladder.options_of(lossy->layer)) {
    const std::size_t count = points.size();
    for (std::size_t i = 0; i < count; ++i) {
      points.push_back(points[i]);
      points.back().insert(option->id);
    }
  }
  return points;
}

std::vector<Cell> plan_cells(const Ladder& ladder, const Sizes& sizes, lab::ProfileLevel profile) {
  Planner plan(sizes);
  add_layers(plan, ladder, sizes);
  add_without(plan, ladder, sizes);
  if (profile != lab::ProfileLevel::none) {
    plan.add_fixed(keys::kTime, "where the time goes", 2,
                   [=](Workbench& bench) { return measure_time(bench, sizes); });
  }
  if (profile == lab::ProfileLevel::roofline || profile == lab::ProfileLevel::deep_dive) {
    plan.add_fixed(keys::kCounters, "hardware counters", 3,
                   [=](Workbench& bench) { return measure_counters(bench, sizes, profile); });
  }
  plan.add_fixed(keys::kRouter, "the router", 3,
                 [=](Workbench& bench) { return measure_router(bench, sizes); });
  add_sweeps(plan, ladder, sizes);
  return plan.cells();
}

}  // namespace gauntlet::study
