#include "engine/cpu/layers.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "engine/cpu/split.h"

namespace gauntlet::engine::cpu {

using kernels::cpu::kAttentionRows;
using kernels::cpu::kBlock;
using kernels::cpu::kGroupRows;
using kernels::cpu::kPageTokens;
using kernels::cpu::Output;
using kernels::cpu::PackedFormat;
using kernels::cpu::Precision;
using kernels::cpu::Product;

Precision Layers::precision_for(const kernels::cpu::PackedMatrix& matrix) const {
  switch (matrix.format) {
    case PackedFormat::f32:
      return Precision::f32;
    case PackedFormat::bf16:
      return machine_.plan.dense;
    case PackedFormat::mxfp4:
      return machine_.plan.experts;
    case PackedFormat::int8:
      return Precision::int8;
  }
  return Precision::f32;
}

void Layers::share_product(Product product, int worker) const {
  const Share share = share_of(product.group_end - product.group_begin, kernels::cpu::kTileGroups,
                               worker, machine_.workers);
  const std::int64_t first = product.group_begin;
  product.group_begin = first + share.begin;
  product.group_end = first + share.end;
  machine_.kernels.product(product);
}

void Layers::embed(int worker) {
  const Share share = share_of(step_.num_tokens(), 1, worker, machine_.workers);
  const std::int64_t half = machine_.rope.half();
  const bool is_first = machine_.parts == nullptr || machine_.parts->is_first_stage();
  if (!is_first) {
    meet(worker, [&] { machine_.parts->receive_rows(buffers_.x.data(), step_.num_tokens()); });
  }
  for (std::int64_t t = share.begin; t < share.end; ++t) {
    if (is_first) machine_.model.embedding.read_row(step_.ids[t], x(t));
    machine_.rope.angles(step_.positions[t], buffers_.cos.data() + t * half,
                         buffers_.sin.data() + t * half);
  }
}

void Layers::run(int worker) {
  if (worker == 0) expert_bytes_ = active_experts_ = 0;
  embed(worker);
  barrier_.wait();
  for (std::int64_t layer = 0; layer < std::ssize(machine_.model.layers); ++layer) {
    if (machine_.parts != nullptr && machine_.parts->is_ordered()) {
      ordered_layer(layer, worker);
    } else if (machine_.plan.fusion == Fusion::fused) {
      fused_layer(layer, worker);
    } else {
      layer_op_by_op(layer, worker);
    }
    export_residuals(layer, worker);
    if (machine_.probe == nullptr) continue;
    if (worker == 0) {
      const std::int64_t numbers = step_.num_tokens() * machine_.model.config.hidden;
      machine_.probe->finished(layer, {buffers_.x.data(), static_cast<std::size_t>(numbers)});
    }
    barrier_.wait();
  }
  if (machine_.parts == nullptr || machine_.parts->is_last_stage()) return;
  meet(worker, [&] { machine_.parts->send_rows(buffers_.x.data(), step_.num_tokens()); });
}

void Layers::meet(int worker, const std::function<void()>& call) {
  if (worker != 0 || failure_) return;
  try {
    call();
  } catch (...) {
    failure_ = std::current_exception();  // the others are at a barrier: they have to go on
  }
}

void Layers::export_residuals(std::int64_t layer, int worker) {
  const auto found = std::ranges::find(machine_.export_layers, layer);
  if (step_.exported.empty() || found == machine_.export_layers.end()) return;
  const std::int64_t hidden = machine_.model.config.hidden;
  const std::int64_t rows = std::ssize(step_.exported);
  float* out = buffers_.residuals.data() + (found - machine_.export_layers.begin()) * rows * hidden;
  const Share share = share_of(rows, 1, worker, machine_.workers);
  for (std::int64_t r = share.begin; r < share.end; ++r) {
    std::copy_n(x(step_.exported[r]), hidden, out + r * hidden);
  }
}

void Layers::clear_partial(int worker) {
  if (machine_.rank_sum == nullptr) return;
  const std::int64_t hidden = machine_.model.config.hidden;
  const std::int64_t groups = hidden / kGroupRows;
  const Share share = share_of(groups, kernels::cpu::kTileGroups, worker, machine_.workers);
  for (std::int64_t t = 0; t < step_.num_tokens(); ++t) {
    float* row = buffers_.partial.data() + t * hidden;
    std::fill(row + share.begin * kGroupRows, row + share.end * kGroupRows, 0.0f);
  }
}

void Layers::add_up(SumOf of, int worker) {
  if (machine_.rank_sum == nullptr) return;
  const std::int64_t hidden = machine_.model.config.hidden;
  meet(worker, [&] {
    machine_.rank_sum->add_up(
        {.values = buffers_.partial.data(), .rows = step_.num_tokens(), .width = hidden, .of = of},
        nullptr);
  });
  barrier_.wait();
  const Share share = share_of(step_.num_tokens() * hidden, kBlock, worker, machine_.workers);
  const float* terms = buffers_.partial.data();
  for (std::int64_t i = share.begin; i < share.end; ++i) buffers_.x.data()[i] += terms[i];
  barrier_.wait();
}

void Layers::show_routing(std::int64_t layer, int worker) {
  if (machine_.probe == nullptr) return;
  if (worker == 0) {
    const auto picks = static_cast<std::size_t>(step_.num_tokens() * experts_per_token());
    machine_.probe->routed(layer, {buffers_.chosen.data(), picks},
                           {buffers_.chosen_weights.data(), picks});
  }
  barrier_.wait();
}

void Layers::place_keys(std::int64_t layer, int worker) {
  const model::ModelConfig& config = machine_.model.config;
  const std::int64_t heads = config.num_heads + config.num_kv_heads;
  const Share share = share_of(step_.num_tokens() * heads, 1, worker, machine_.workers);
  for (std::int64_t i = share.begin; i < share.end; ++i) place_head(layer, i / heads, i % heads);
}

/// Heads of queries come first, those of keys after them.
void Layers::place_head(std::int64_t layer, std::int64_t token, std::int64_t head) {
  const model::ModelConfig& config = machine_.model.config;
  const std::int64_t half = machine_.rope.half();
  float* row = buffers_.qkv.row(token) + head * config.head_dim;
  rotate(row, half, buffers_.cos.data() + token * half, buffers_.sin.data() + token * half);
  if (head < config.num_heads) return;
  const std::int64_t slot = step_.slots[token];
  if (slot < 0) return;
  const StepItem& item = step_.items[step_.item_of[token]];
  const int group = static_cast<int>(machine_.kv.group_of(layer));
  machine_.kv.write(layer, item.tables[group][slot / kPageTokens], head - config.num_heads,
                    static_cast<int>(slot % kPageTokens), row, row + config.kv_width());
}

void Layers::attend(std::int64_t layer, int worker) {
  const model::ModelConfig& config = machine_.model.config;
  const std::int64_t heads_per_kv = config.num_heads / config.num_kv_heads;
  // Heads of a page lie side by side: with enough sequences to share out, one worker takes them
  // all.
  const bool takes_all_heads = std::ssize(step_.branches) >= kSharedItems * machine_.workers;
  std::int64_t tile = 0;
  for (const Branch& branch : step_.branches) {
    const std::int64_t rows = branch.num_tokens * heads_per_kv;
    for (std::int64_t first = 0; first < rows; first += kAttentionRows, ++tile) {
      const auto count = static_cast<int>(std::min<std::int64_t>(kAttentionRows, rows - first));
      for (std::int64_t head = 0; head < config.num_kv_heads; ++head) {
        const std::int64_t task = takes_all_heads ? tile : tile * config.num_kv_heads + head;
        if (task % machine_.workers == worker) {
          attend_rows(layer, branch, head, first, count, worker);
        }
      }
    }
  }
}

void Layers::attend_rows(std::int64_t layer, const Branch& branch, std::int64_t head,
                         std::int64_t first_row, int num_rows, int worker) {
  const model::ModelConfig& config = machine_.model.config;
  const std::int64_t heads_per_kv = config.num_heads / config.num_kv_heads;
  const std::int64_t dim = config.head_dim;
  Buffers::Private& own = buffers_.workers[worker];
  float* queries = own.attention.data();
  float* outputs = queries + kAttentionRows * dim;
  const float scale = 1.0f / std::sqrt(static_cast<float>(dim));
  std::int64_t positions[kAttentionRows];
  float sinks[kAttentionRows];
  float* targets[kAttentionRows];
  std::int64_t last = 0;
  for (int r = 0; r < num_rows; ++r) {
    const std::int64_t token = step_.branch_tokens[branch.first + (first_row + r) / heads_per_kv];
    const std::int64_t query_head = head * heads_per_kv + (first_row + r) % heads_per_kv;
    const float* q = buffers_.qkv.row(token) + query_head * dim;
    for (std::int64_t d = 0; d < dim; ++d) queries[r * dim + d] = q[d] * scale;
    positions[r] = step_.positions[token];
    last = std::max(last, positions[r]);
    sinks[r] = machine_.model.layers[layer].sinks[query_head];
    targets[r] = buffers_.attended.row(token) + machine_.attended_begin + query_head * dim;
  }
  const StepItem& item = step_.items[branch.item];
  const KvGroup group = machine_.kv.group_of(layer);
  kernels::cpu::AttentionTask task{.q = queries,
                                   .q_stride = dim,
                                   .out = outputs,
                                   .out_stride = dim,
                                   .num_rows = num_rows,
                                   .positions = positions,
                                   .window = group == KvGroup::sliding ? config.sliding_window : 0,
                                   .sinks = sinks,
                                   .head_dim = static_cast<int>(dim),
                                   .type = machine_.plan.kv == KvType::f32
                                               ? kernels::cpu::KvType::f32
                                               : kernels::cpu::KvType::bf16,
                                   .pages = item.tables[static_cast<int>(group)].data(),
                                   .k_base = machine_.kv.keys(layer, head),
                                   .v_base = machine_.kv.values(layer, head),
                                   .page_stride_bytes = machine_.kv.page_stride_bytes()};
  if (branch.num_slots > 0) {
    const kernels::cpu::TreePath path = step_.path(branch);
    const auto bytes =
        static_cast<std::size_t>(kernels::cpu::path_bytes(path, last, {task.head_dim, task.type}));
    own.path_keys.resize(std::max(bytes, own.path_keys.size()));
    own.path_values.resize(own.path_keys.size());
    kernels::cpu::gather_path(path, last, {own.path_keys.data(), own.path_values.data()}, task);
  }
  if (machine_.plan.attention == AttentionKind::flash) {
    machine_.kernels.flash_attention(task);
  } else {
    own.scores.resize(static_cast<std::size_t>(last + 2 * kPageTokens));
    task.scratch = own.scores.data();
    machine_.kernels.naive_attention(task);
  }
  for (int r = 0; r < num_rows; ++r) {
    std::memcpy(targets[r], outputs + r * dim, static_cast<std::size_t>(dim) * sizeof(float));
  }
}

void Layers::route(std::int64_t first, std::int64_t count, const PackedLayer& layer,
                   const Rows& normed, float* logits, std::int32_t* chosen, float* weights) const {
  const model::ModelConfig& config = machine_.model.config;
  const std::int64_t stride = layer.router.num_groups() * kGroupRows;
  // Always in float32: a rounded router would choose other experts.
  machine_.kernels.product({.weights = layer.router,
                            .group_end = layer.router.num_groups(),
                            .num_tokens = count,
                            .x = normed.view(first),
                            .bias = layer.router_bias.data(),
                            .out = logits + first * stride,
                            .out_stride = stride});
  for (std::int64_t t = first; t < first + count; ++t) {
    choose_experts(logits + t * stride, config.num_experts, experts_per_token(),
                   chosen + t * experts_per_token(), weights + t * experts_per_token());
  }
}

void Layers::gate_up_rows(const PackedLayer& layer, const Routing& routing, const Rows& normed,
                          int worker) {
  for (std::size_t e = 0; e < layer.experts.size(); ++e) {
    const PackedExpert& expert = layer.experts[e];
    const std::int64_t first = routing.first_slot[e];
    const std::int64_t count = routing.first_slot[e + 1] - first;
    if (count == 0 || !expert.is_held()) continue;
    share_product({.weights = expert.gate_up,
                   .precision = precision_for(expert.gate_up),
                   .group_end = expert.gate_up.num_groups(),
                   .num_tokens = count,
                   .x = normed.view(),
                   .x_rows = routing.slot_token.data() + first,
                   .bias = expert.gate_up_bias.data(),
                   .out = buffers_.gate_up.row(first),
                   .out_stride = buffers_.gate_up.stride()},
                  worker);
  }
}

void Layers::add_slots(const Routing& routing, std::int64_t expert, const Share& columns,
                       float* out) {
  for (std::int64_t s = routing.first_slot[expert]; s < routing.first_slot[expert + 1]; ++s) {
    float* row = out + routing.slot_token[s] * machine_.model.config.hidden;
    const float* term = buffers_.expert_out.row(s);
    for (std::int64_t i = columns.begin; i < columns.end; ++i) {
      row[i] += term[i] * routing.slot_weight[s];
    }
  }
}

void Layers::count_experts(std::int64_t index, const Routing& routing, int worker) {
  if (worker != 0) return;
  const PackedLayer& layer = machine_.model.layers[index];
  std::int64_t* tokens = buffers_.expert_tokens.data() + index * machine_.model.config.num_experts;
  for (std::size_t e = 0; e < layer.experts.size(); ++e) {
    const std::int64_t count = routing.first_slot[e + 1] - routing.first_slot[e];
    if (count == 0 || !layer.experts[e].is_held()) continue;
    tokens[e] += count;
    expert_bytes_ += layer.experts[e].gate_up.bytes() + layer.experts[e].down.bytes();
    ++active_experts_;
  }
}

}  // namespace gauntlet::engine::cpu
