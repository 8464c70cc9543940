#include "study/cells.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "study/bench/energy_use.h"
#include "study/bench/measurements.h"
#include "study/fidelity/layer_check.h"
#include "study/results/cell_json.h"

namespace gauntlet::study {
namespace keys {

std::string verify(int layer) { return fmt::format("verify/{}", layer); }
std::string layer(int layer) { return fmt::format("layer/{}", layer); }
std::string energy(int layer) { return fmt::format("energy/{}", layer); }
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

/// What the journal gets.
template <class T>
Expected<nlohmann::json> kept(const Expected<T>& measured) {
  if (!measured) return measured.error();
  return cell_to_json(*measured);
}

// How the time is shared out: a duel of layers is what a study is for.
constexpr double kLayerWeight = 3, kWithoutWeight = 1.5, kTotalWeight = 2, kServeWeight = 3,
                 kSweepWeight = 0.5, kPrecisionWeight = 1, kLoadWeight = 1.5;

// Seconds that cells take beside their repetitions, on a machine and a model that nobody knows yet:
// right among themselves, and scaled by what the first ones took.
constexpr double kVerifyS = 1.5, kDuelS = 1, kBaselineDuelS = 4, kServeS = 3, kSaturationS = 1.5,
                 kTimeS = 0.5, kRouterS = 1, kCountersS = 3, kPointS = 0.1, kPrecisionS = 1,
                 kLoadS = 0.2, kContextTokenS = 5e-5, kEnergyS = 2;

/// A layer's duel and an option's are the same to the clock, but for stacks that must be made first
/// and for how slow the baseline is.
CellTime duel_time(Rank rank, double weight, double setup_s) {
  return {"duel", rank, weight, setup_s};
}
CellTime serve_time(Rank rank) { return {"serve", rank, kServeWeight, kServeS}; }

void add_layer(std::vector<Cell>& cells, const Ladder& ladder, const Sizes& sizes, int layer) {
  const std::string name = fmt::format("layer {}, {}", layer, ladder.layers[layer].name);
  LayerCheck layer_check{.layer = layer, .before = {}};
  if (layer > 0 && ladder.allowed_percent(layer) == 0) layer_check.before = layer - 1;
  cells.push_back({keys::verify(layer),
                   name + ": verifying",
                   {"verify", Rank::layers, 0, kVerifyS + sizes.stack_seconds},
                   [=](Workbench& bench, const Journal& journal, double) {
                     return kept(check_layer(bench, journal, sizes, layer_check));
                   }});
  cells.push_back({keys::energy(layer),
                   name + ": energy",
                   {"energy", Rank::layers, 0, kEnergyS},
                   [=](Workbench& bench, const Journal&, double) {
                     return kept(measure_energy(bench, sizes, layer));
                   }});
  if (layer == 0) return;
  const Sides sides{ladder.up_to(layer - 1), ladder.up_to(layer)};
  const std::string title = name + ": in turns with the layer before";
  if (ladder.stage_of(layer) == Stage::engine) {
    cells.push_back({keys::layer(layer), title,
                     duel_time(Rank::layers, kLayerWeight, layer == 1 ? kBaselineDuelS : kDuelS),
                     [=](Workbench& bench, const Journal&, double seconds) {
                       return kept(measure_duel(bench, sizes, sides, seconds));
                     }});
    return;
  }
  cells.push_back({keys::kSaturation,
                   "requests per second at most",
                   {"saturation", Rank::layers, 0, kSaturationS},
                   [=](Workbench& bench, const Journal&, double) {
                     return kept(measure_saturation(bench, sizes));
                   }});
  cells.push_back({keys::layer(layer), title, serve_time(Rank::layers),
                   [=](Workbench& bench, const Journal& journal, double seconds) {
                     return kept(measure_serve_duel(bench, journal, sizes, sides, seconds));
                   }});
}

void add_total(std::vector<Cell>& cells, const Ladder& ladder, const Sizes& sizes) {
  cells.push_back(
      {keys::kTotal, "the whole stack in turns with the baseline",
       duel_time(Rank::layers, kTotalWeight, kBaselineDuelS + sizes.stack_seconds),
       [=, sides = Sides{{}, ladder.all()}](Workbench& bench, const Journal&, double seconds) {
         return kept(measure_duel(bench, sizes, sides, seconds));
       }});
}

void add_without(std::vector<Cell>& cells, const Ladder& ladder, const Sizes& sizes) {
  for (const Option& option : ladder.options) {
    Sides sides{ladder.all(), ladder.all()};
    sides.a.erase(option.id);
    const bool served = option.stage == Stage::serving;
    cells.push_back(
        {keys::without(option.id), fmt::format("the whole stack without {}", option.id),
         served ? serve_time(Rank::company)
                : duel_time(Rank::company, kWithoutWeight, kDuelS + sizes.stack_seconds),
         [=](Workbench& bench, const Journal& journal, double seconds) {
           return served ? kept(measure_serve_duel(bench, journal, sizes, sides, seconds))
                         : kept(measure_duel(bench, sizes, sides, seconds));
         }});
  }
}

void add_causes(std::vector<Cell>& cells, const Sizes& sizes, lab::ProfileLevel profile) {
  if (profile != lab::ProfileLevel::none) {
    cells.push_back({keys::kTime,
                     "where the time goes",
                     {"time", Rank::causes, 0, kTimeS},
                     [=](Workbench& bench, const Journal&, double) {
                       return kept(measure_time(bench, sizes));
                     }});
  }
  if (profile == lab::ProfileLevel::roofline || profile == lab::ProfileLevel::deep_dive) {
    cells.push_back({keys::kCounters,
                     "hardware counters",
                     {"counters", Rank::causes, 0, kCountersS},
                     [=](Workbench& bench, const Journal&, double) {
                       return kept(measure_counters(bench, sizes, profile));
                     }});
  }
  cells.push_back({keys::kRouter,
                   "the router",
                   {"router", Rank::causes, 0, kRouterS},
                   [=](Workbench& bench, const Journal&, double) {
                     return kept(measure_router(bench, sizes));
                   }});
}

void add_loads(std::vector<Cell>& cells, const Sizes& sizes) {
  for (const double load : sizes.loads) {
    cells.push_back({keys::load(load),
                     fmt::format("{:.2f} of saturation", load),
                     {"load", Rank::load, kLoadWeight, kLoadS},
                     [=](Workbench& bench, const Journal& journal, double seconds) {
                       return kept(measure_load(bench, journal, sizes, load, seconds));
                     }});
  }
}

void add_sweeps(std::vector<Cell>& cells, const Ladder& ladder, const Sizes& sizes) {
  for (const std::int64_t batch : sizes.batches) {
    cells.push_back({keys::batch(batch),
                     fmt::format("batch {}", batch),
                     {"batch", Rank::sweeps, kSweepWeight, kPointS},
                     [=](Workbench& bench, const Journal&, double seconds) {
                       return kept(measure_batch(bench, sizes, batch, seconds));
                     }});
  }
  for (const std::int64_t length : sizes.prompt_lengths) {
    for (const std::int64_t batch : sizes.prompt_batches) {
      cells.push_back({keys::prompts(length, batch),
                       fmt::format("{} prompts of {}", batch, length),
                       {"prompts", Rank::sweeps, kSweepWeight, kPointS},
                       [=](Workbench& bench, const Journal&, double seconds) {
                         return kept(measure_prompts(bench, sizes, {length, batch}, seconds));
                       }});
    }
  }
  for (const OptionIds& on : precision_points(ladder)) {
    cells.push_back(
        {keys::precision(on),
         fmt::format("precision: {}", fmt::join(on, ", ")),
         {"precision", Rank::sweeps, kPrecisionWeight, kPrecisionS + sizes.stack_seconds},
         [=](Workbench& bench, const Journal&, double seconds) {
           return kept(measure_precision(bench, sizes, on, seconds));
         }});
  }
  for (const std::int64_t context : sizes.contexts) {
    for (const std::int64_t batch : sizes.context_batches) {
      const double fill_s = kContextTokenS * static_cast<double>(context * batch);
      cells.push_back({keys::context(context, batch),
                       fmt::format("context {} x {}", context, batch),
                       {"context", Rank::sweeps, kSweepWeight, kPointS + fill_s},
                       [=](Workbench& bench, const Journal&, double seconds) {
                         return kept(measure_context(bench, sizes, {context, batch}, seconds));
                       }});
    }
  }
}

}  // namespace

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
  std::vector<Cell> cells;
  for (int layer = 0; layer < std::ssize(ladder.layers); ++layer) {
    add_layer(cells, ladder, sizes, layer);
  }
  add_total(cells, ladder, sizes);
  add_without(cells, ladder, sizes);
  add_causes(cells, sizes, profile);
  add_loads(cells, sizes);
  add_sweeps(cells, ladder, sizes);
  return cells;
}

}  // namespace gauntlet::study
