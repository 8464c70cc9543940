// The ladder's part of a study's results: what each layer is and what it gained.
#include <algorithm>

#include "study/cells.h"
#include "study/fidelity/rules.h"
#include "study/results/assemble_parts.h"
#include "study/results/estimates.h"

namespace gauntlet::study::inline results {
namespace {

/// Bytes of keys and values of one position, in all layers that keep it.
std::int64_t kv_bytes(const model::ModelConfig& model, const Stack& stack) {
  const engine::KvType type = stack.engine.kv.value_or(engine::KvType::bf16);
  const std::int64_t element = type == engine::KvType::f32    ? 4
                               : type == engine::KvType::bf16 ? 2
                                                              : 1;
  return std::ranges::count(model.attention, model::AttentionSpan::full) * 2 * model.kv_width() *
         element;
}

/// The baseline's figures are those of the side that the first layer improves on.
void add_engine_duel(CellReader& cells, LayerResult& layer) {
  const auto duel = cells.read<Duel>(keys::layer(std::max(layer.index, 1)));
  layer.gap = duel.gap;
  if (!duel) return;
  if (layer.index > 0) layer.gain = gain_of(*duel);
  layer.engine = engine_figures(*duel, layer.index == 0 ? SideOf::a : SideOf::b);
}

void add_serve_duel(CellReader& cells, LayerResult& layer) {
  const auto duel = cells.read<ServeDuel>(keys::layer(layer.index));
  layer.gap = duel.gap;
  if (!duel) return;
  layer.gain = gain_of(*duel);
  layer.serving = {.before = duel->a, .after = duel->b};
}

LayerResult layer_of(const StudyFacts& facts, CellReader& cells, int index) {
  const Ladder& ladder = facts.ladder;
  LayerResult layer{
      .index = index,
      .name = ladder.layers[index].name,
      .title = ladder.layers[index].title,
      .options = {},
      .targets = {},
      .stage = ladder.stage_of(index),
      .verification = verification_of(facts, cells, index),
      .energy = cells.read<EnergyUse>(keys::energy(index)),
      .kv_bytes_per_position = kv_bytes(facts.model, ladder.stack(ladder.up_to(index)))};
  for (const Option* option : ladder.options_of(index)) {
    layer.options.push_back(option->id);
    for (const std::string& target : option->targets) layer.targets.push_back(target);
  }
  if (layer.stage == Stage::serving) {
    add_serve_duel(cells, layer);
  } else {
    add_engine_duel(cells, layer);
  }
  return layer;
}

/// Lines of the plan without an option that differ from the whole stack's.
std::vector<std::string> changed_lines(const Duel& duel) {
  std::vector<std::string> lines;
  const auto &with = duel.b.plan, &without = duel.a.plan;
  for (std::size_t i = 0; i < std::min(with.size(), without.size()); ++i) {
    if (with[i] != without[i]) lines.push_back(without[i]);
  }
  return lines;
}

Measured<Worth> worth_of(CellReader& cells, const Option& option) {
  const std::string key = keys::without(option.id);
  if (option.stage == Stage::serving) {
    return cells.read<ServeDuel>(key).then([](const ServeDuel& duel) {
      return Worth{.gain = gain_of(duel), .plan_without = {}, .sign = {}};
    });
  }
  return cells.read<Duel>(key).then([](const Duel& duel) {
    return Worth{.gain = gain_of(duel), .plan_without = changed_lines(duel), .sign = {}};
  });
}

SignCheck sign_of(const Ladder& ladder, const Option& option, const Worth& worth,
                  const Gain& layer_gain) {
  Company company{.option = option.id,
                  .worth = worth.gain.all.ratio,
                  .layer = option.layer,
                  .layer_gain = layer_gain.all.ratio,
                  .others = {},
                  .plan_without = worth.plan_without};
  for (const Option* other : ladder.options_of(option.layer)) {
    if (other->id != option.id) company.others.push_back(other->id);
  }
  return check_sign(company);
}

}  // namespace

std::vector<LayerResult> layers_of(const StudyFacts& facts, CellReader& cells) {
  std::vector<LayerResult> layers;
  for (int index = 0; index < std::ssize(facts.ladder.layers); ++index) {
    layers.push_back(layer_of(facts, cells, index));
  }
  return layers;
}

Measured<Total> total_of(CellReader& cells) {
  return cells.read<Duel>(keys::kTotal).then([](const Duel& duel) {
    return Total{.gain = gain_of(duel), .engine = engine_figures(duel, SideOf::b)};
  });
}

std::vector<OptionWorth> leave_one_out(const StudyFacts& facts, CellReader& cells,
                                       const std::vector<LayerResult>& layers) {
  std::vector<OptionWorth> list;
  for (const Option& option : facts.ladder.options) {
    Measured<Worth> worth = worth_of(cells, option).or_not_yet();
    const auto& layer_gain = layers[static_cast<std::size_t>(option.layer)].gain;
    if (worth && layer_gain) {
      worth.value->sign = sign_of(facts.ladder, option, *worth, *layer_gain);
    }
    list.push_back({.option = option.id,
                    .title = option.title,
                    .layer = option.layer,
                    .worth = std::move(worth)});
  }
  return list;
}

}  // namespace gauntlet::study::inline results
