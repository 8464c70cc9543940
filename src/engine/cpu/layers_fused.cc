// A layer with its operations joined: few barriers, and nothing goes through memory that can stay
// in a cache. Where stages overlap, a worker takes whole heads from their products to what they
// attend to, and begins with the experts that are activated while others still work on the next.
#include "engine/cpu/layers.h"
#include "engine/cpu/split.h"

namespace gauntlet::engine::cpu {

using kernels::cpu::kBlock;
using kernels::cpu::Output;
using kernels::cpu::Precision;

void Layers::fused_layer(std::int64_t index, int worker) {
  const PackedLayer& layer = machine_.model.layers[index];
  const model::ModelConfig& config = machine_.model.config;
  const std::int64_t tokens = step_.num_tokens();
  const auto& kernels = machine_.kernels;
  Buffers::Private& own = buffers_.workers[worker];
  Rows& normed = repeats() ? own.normed : buffers_.normed;
  const Share share = repeats() ? Share{0, tokens} : share_of(tokens, 1, worker, machine_.workers);
  const auto epsilon = static_cast<float>(config.rms_epsilon);

  for (std::int64_t t = share.begin; t < share.end; ++t) {
    kernels.rms_norm(x(t), layer.attention_norm.data(), epsilon, config.hidden, normed.row(t));
    normed.round(kernels, precision_for(layer.qkv), t, 0, normed.stride());
  }
  if (!repeats()) barrier_.wait();
  fused_attention(index, normed, worker);
  share_product({.weights = layer.o,
                 .precision = precision_for(layer.o),
                 .group_end = layer.o.num_groups(),
                 .num_tokens = tokens,
                 .x = buffers_.attended.view(),
                 .bias = layer.o_bias.data(),
                 .output = output(),
                 .out = sums(),
                 .out_stride = config.hidden},
                worker);
  barrier_.wait();
  add_up(SumOf::attention, worker);

  const Precision expert_precision = precision_for(layer.held_expert().gate_up);
  for (std::int64_t t = share.begin; t < share.end; ++t) {
    kernels.rms_norm(x(t), layer.mlp_norm.data(), epsilon, config.hidden, normed.row(t));
    normed.round(kernels, expert_precision, t, 0, normed.stride());
  }
  std::int32_t* chosen = repeats() ? own.chosen.data() : buffers_.chosen.data();
  float* weights = repeats() ? own.chosen_weights.data() : buffers_.chosen_weights.data();
  route(share.begin, share.end - share.begin, layer, normed,
        repeats() ? own.router.data() : buffers_.router.data(), chosen, weights);
  if (!repeats()) barrier_.wait();
  show_routing(index, worker);
  group_by_expert(chosen, weights, tokens, experts_per_token(), config.num_experts, own.routing);
  count_experts(index, own.routing, worker);
  fused_experts(layer, own.routing, normed, worker);
}

bool Layers::have_own_heads() const {
  const model::ModelConfig& config = machine_.model.config;
  return overlaps() && config.num_kv_heads % machine_.workers == 0 && config.head_dim % kBlock == 0;
}

void Layers::fused_attention(std::int64_t index, const Rows& normed, int worker) {
  if (have_own_heads()) {
    attend_with_own_heads(index, normed, worker);
    return barrier_.wait();
  }
  const PackedLayer& layer = machine_.model.layers[index];
  const std::int64_t tokens = step_.num_tokens();
  attend_together(index, normed, worker);
  if (precision_for(layer.o) == Precision::f32) return;
  const Share rows = share_of(tokens, 1, worker, machine_.workers);
  for (std::int64_t t = rows.begin; t < rows.end; ++t) {
    buffers_.attended.round(machine_.kernels, precision_for(layer.o), t, 0,
                            buffers_.attended.stride());
  }
  barrier_.wait();
}

void Layers::attend_together(std::int64_t index, const Rows& normed, int worker) {
  const PackedLayer& layer = machine_.model.layers[index];
  share_product({.weights = layer.qkv,
                 .precision = precision_for(layer.qkv),
                 .group_end = layer.qkv.num_groups(),
                 .num_tokens = step_.num_tokens(),
                 .x = normed.view(),
                 .bias = layer.qkv_bias.data(),
                 .out = buffers_.qkv.row(0),
                 .out_stride = buffers_.qkv.stride()},
                worker);
  barrier_.wait();
  place_keys(index, worker);
  barrier_.wait();
  attend(index, worker);
  barrier_.wait();
}

void Layers::attend_with_own_heads(std::int64_t index, const Rows& normed, int worker) {
  const PackedLayer& layer = machine_.model.layers[index];
  const model::ModelConfig& config = machine_.model.config;
  const std::int64_t tokens = step_.num_tokens();
  const std::int64_t per_kv = config.num_heads / config.num_kv_heads;
  const Share kv = share_of(config.num_kv_heads, 1, worker, machine_.workers);
  const Share queries{kv.begin * per_kv, kv.end * per_kv};
  const Share keys{config.num_heads + kv.begin, config.num_heads + kv.end};
  const Share values{keys.begin + config.num_kv_heads, keys.end + config.num_kv_heads};
  const std::int64_t groups_per_head = config.head_dim / kernels::cpu::kGroupRows;
  for (const Share& heads : {queries, keys, values}) {
    machine_.kernels.product({.weights = layer.qkv,
                              .precision = precision_for(layer.qkv),
                              .group_begin = heads.begin * groups_per_head,
                              .group_end = heads.end * groups_per_head,
                              .num_tokens = tokens,
                              .x = normed.view(),
                              .bias = layer.qkv_bias.data(),
                              .out = buffers_.qkv.row(0),
                              .out_stride = buffers_.qkv.stride()});
  }
  for (std::int64_t t = 0; t < tokens; ++t) {
    for (const Share& heads : {queries, keys}) {
      for (std::int64_t h = heads.begin; h < heads.end; ++h) place_head(index, t, h);
    }
  }
  for (const Branch& branch : step_.branches) {
    const std::int64_t rows = branch.num_tokens * per_kv;
    for (std::int64_t first = 0; first < rows; first += kernels::cpu::kAttentionRows) {
      const auto count =
          static_cast<int>(std::min<std::int64_t>(kernels::cpu::kAttentionRows, rows - first));
      for (std::int64_t h = kv.begin; h < kv.end; ++h) {
        attend_rows(index, branch, h, first, count, worker);
      }
    }
  }
  for (std::int64_t t = 0; t < tokens; ++t) {
    buffers_.attended.round(machine_.kernels, precision_for(layer.o), t,
                            queries.begin * config.head_dim,
                            (queries.end - queries.begin) * config.head_dim);
  }
}

void Layers::fused_experts(const PackedLayer& layer, const Routing& routing, const Rows& normed,
                           int worker) {
  const model::ModelConfig& config = machine_.model.config;
  for (std::size_t e = 0; e < layer.experts.size(); ++e) {
    if (routing.first_slot[e + 1] > routing.first_slot[e] && layer.experts[e].is_held()) {
      fused_gates(layer.experts[e], routing, static_cast<std::int64_t>(e), normed, worker);
      if (overlaps()) buffers_.activated_experts[e].arrive(machine_.workers);
    }
  }
  if (!overlaps()) barrier_.wait();
  clear_partial(worker);
  // Experts add to the residual in their order, whichever tokens are there: one order per sum.
  for (std::size_t e = 0; e < layer.experts.size(); ++e) {
    const std::int64_t first = routing.first_slot[e];
    const std::int64_t count = routing.first_slot[e + 1] - first;
    if (count == 0 || !layer.experts[e].is_held()) continue;
    if (overlaps()) buffers_.activated_experts[e].wait(machine_.workers);
    const PackedExpert& expert = layer.experts[e];
    share_product({.weights = expert.down,
                   .precision = precision_for(expert.down),
                   .group_end = expert.down.num_groups(),
                   .num_tokens = count,
                   .x = buffers_.activated.view(first),
                   .bias = expert.down_bias.data(),
                   .output = Output::accumulate,
                   .out = sums(),
                   .out_stride = config.hidden,
                   .out_rows = routing.slot_token.data() + first,
                   .token_weights = routing.slot_weight.data() + first},
                  worker);
  }
  barrier_.wait();
  // The next to arrive comes from behind another barrier.
  if (worker == 0 && overlaps()) {
    for (Milestone& activated : buffers_.activated_experts) activated.reset();
  }
  add_up(SumOf::experts, worker);
}

/// This worker's share of one expert's gates and ups, activated and rounded while they are in
/// cache.
void Layers::fused_gates(const PackedExpert& expert, const Routing& routing, std::int64_t e,
                         const Rows& normed, int worker) {
  const model::ModelConfig& config = machine_.model.config;
  float* tile = buffers_.workers[worker].tile.data();
  const Precision down = precision_for(expert.down);
  const std::int64_t chunks = config.intermediate / kBlock;
  // Whoever gets the longer share differs from expert to expert.
  const Share share =
      share_of(chunks, 1, static_cast<int>((worker + e) % machine_.workers), machine_.workers);
  for (std::int64_t chunk = share.begin; chunk < share.end; ++chunk) {
    for (std::int64_t first = routing.first_slot[e]; first < routing.first_slot[e + 1];
         first += kExpertTile) {
      const std::int64_t count =
          std::min<std::int64_t>(kExpertTile, routing.first_slot[e + 1] - first);
      machine_.kernels.product({.weights = expert.gate_up,
                                .precision = precision_for(expert.gate_up),
                                .group_begin = chunk * 4,
                                .group_end = chunk * 4 + 4,
                                .num_tokens = count,
                                .x = normed.view(),
                                .x_rows = routing.slot_token.data() + first,
                                .bias = expert.gate_up_bias.data(),
                                .out = tile,
                                .out_stride = 2 * kBlock,
                                .out_first = chunk * 2 * kBlock});
      for (std::int64_t i = 0; i < count; ++i) {
        machine_.kernels.swiglu(tile + i * 2 * kBlock, static_cast<float>(config.swiglu_limit),
                                buffers_.activated.row(first + i) + chunk * kBlock);
        buffers_.activated.round(machine_.kernels, down, first + i, chunk * kBlock, kBlock);
      }
    }
  }
}

}  // namespace gauntlet::engine::cpu
