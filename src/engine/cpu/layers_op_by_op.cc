// A layer as a textbook writes it: each operation reads its input from memory and writes its output
// there, with a barrier after each.
#include "engine/cpu/layers.h"
#include "engine/cpu/split.h"

namespace gauntlet::engine::cpu {

using kernels::cpu::kBlock;
using kernels::cpu::kGroupRows;

void Layers::layer_op_by_op(std::int64_t index, int worker) {
  const PackedLayer& layer = machine_.model.layers[index];
  const model::ModelConfig& config = machine_.model.config;
  const auto& kernels = machine_.kernels;
  const std::int64_t tokens = step_.num_tokens();
  const Share rows = share_of(tokens, 1, worker, machine_.workers);
  Buffers::Private& own = buffers_.workers[worker];
  const auto epsilon = static_cast<float>(config.rms_epsilon);
  Rows& normed = buffers_.normed;

  const auto norm = [&](const std::vector<float>& weight) {
    for (std::int64_t t = rows.begin; t < rows.end; ++t) {
      kernels.rms_norm(x(t), weight.data(), epsilon, config.hidden, normed.row(t));
    }
    barrier_.wait();
  };
  const auto round = [&](Rows& all, const kernels::cpu::PackedMatrix& next, Share share) {
    for (std::int64_t t = share.begin; t < share.end; ++t) {
      all.round(kernels, precision_for(next), t, 0, all.stride());
    }
    barrier_.wait();
  };
  const auto add = [&](float* out, const float* term, std::int64_t width) {
    for (std::int64_t i = 0; i < width; ++i) out[i] += term[i];
  };

  norm(layer.attention_norm);
  round(normed, layer.qkv, rows);
  const std::int64_t ends[] = {config.query_width(), config.query_width() + config.kv_width(),
                               config.query_width() + 2 * config.kv_width()};
  std::int64_t begin = 0;
  for (const std::int64_t end : ends) {
    share_product({.weights = layer.qkv,
                   .precision = precision_for(layer.qkv),
                   .group_begin = begin / kGroupRows,
                   .group_end = end / kGroupRows,
                   .num_tokens = tokens,
                   .x = normed.view(),
                   .out = buffers_.qkv.row(0),
                   .out_stride = buffers_.qkv.stride()},
                  worker);
    barrier_.wait();
    begin = end;
  }
  for (std::int64_t t = rows.begin; t < rows.end; ++t) {
    add(buffers_.qkv.row(t), layer.qkv_bias.data(), ends[2]);
  }
  barrier_.wait();
  place_keys(index, worker);
  barrier_.wait();
  attend(index, worker);
  barrier_.wait();
  round(buffers_.attended, layer.o, rows);
  const bool is_whole = machine_.rank_sum == nullptr;
  float* projected = is_whole ? normed.row(0) : buffers_.partial.data();  // [tokens, hidden]
  share_product({.weights = layer.o,
                 .precision = precision_for(layer.o),
                 .group_end = layer.o.num_groups(),
                 .num_tokens = tokens,
                 .x = buffers_.attended.view(),
                 .out = projected,
                 .out_stride = config.hidden},
                worker);
  barrier_.wait();
  for (std::int64_t t = rows.begin; t < rows.end; ++t) {
    add(projected + t * config.hidden, layer.o_bias.data(), config.hidden);
  }
  barrier_.wait();
  if (is_whole) {
    for (std::int64_t t = rows.begin; t < rows.end; ++t) {
      add(x(t), projected + t * config.hidden, config.hidden);
    }
    barrier_.wait();
  }
  add_up(SumOf::attention, worker);

  norm(layer.mlp_norm);
  round(normed, layer.held_expert().gate_up, rows);
  route(rows.begin, rows.end - rows.begin, layer, normed, buffers_.router.data(),
        buffers_.chosen.data(), buffers_.chosen_weights.data());
  barrier_.wait();
  show_routing(index, worker);
  group_by_expert(buffers_.chosen.data(), buffers_.chosen_weights.data(), tokens,
                  experts_per_token(), config.num_experts, own.routing);
  count_experts(index, own.routing, worker);
  const Routing& routing = own.routing;
  const auto each_expert = [&](auto&& body) {
    for (std::size_t e = 0; e < layer.experts.size(); ++e) {
      const std::int64_t first = routing.first_slot[e];
      const std::int64_t count = routing.first_slot[e + 1] - first;
      if (count > 0 && layer.experts[e].is_held()) body(layer.experts[e], first, count);
    }
    barrier_.wait();
  };
  const Share slots = share_of(tokens * experts_per_token(), 1, worker, machine_.workers);

  gate_up_rows(layer, routing, normed, worker);
  barrier_.wait();
  for (std::int64_t s = slots.begin; s < slots.end; ++s) {
    for (std::int64_t chunk = 0; chunk < config.intermediate / kBlock; ++chunk) {
      kernels.swiglu(buffers_.gate_up.row(s) + chunk * 2 * kBlock,
                     static_cast<float>(config.swiglu_limit),
                     buffers_.activated.row(s) + chunk * kBlock);
    }
  }
  barrier_.wait();
  round(buffers_.activated, layer.held_expert().down, slots);
  each_expert([&](const PackedExpert& expert, std::int64_t first, std::int64_t count) {
    share_product({.weights = expert.down,
                   .precision = precision_for(expert.down),
                   .group_end = expert.down.num_groups(),
                   .num_tokens = count,
                   .x = buffers_.activated.view(first),
                   .bias = expert.down_bias.data(),
                   .out = buffers_.expert_out.row(first),
                   .out_stride = buffers_.expert_out.stride()},
                  worker);
  });
  // A token's slots lie in the order of its experts: the order in which the fused layer adds them.
  const Share columns =
      share_of(config.hidden, kGroupRows * kernels::cpu::kTileGroups, worker, machine_.workers);
  clear_partial(worker);
  for (std::size_t e = 0; e < layer.experts.size(); ++e) {
    if (layer.experts[e].is_held())
      add_slots(routing, static_cast<std::int64_t>(e), columns, sums());
  }
  barrier_.wait();
  add_up(SumOf::experts, worker);
}

}  // namespace gauntlet::engine::cpu
