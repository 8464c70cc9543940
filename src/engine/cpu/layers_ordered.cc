// A layer of one rank among several, with the bits of one rank alone: every sum of a product is
// made whole by one rank, from inputs that are gathered, and experts are added in their order.
#include "engine/cpu/layers.h"

namespace gauntlet::engine::cpu {

using kernels::cpu::kBlock;
using kernels::cpu::kGroupRows;

void Layers::ordered_layer(std::int64_t index, int worker) {
  const PackedLayer& layer = machine_.model.layers[index];
  const model::ModelConfig& config = machine_.model.config;
  const model::Slice& slice = machine_.parts->slice();
  const auto& kernels = machine_.kernels;
  const std::int64_t tokens = step_.num_tokens();
  const Share rows = share_of(tokens, 1, worker, machine_.workers);
  const auto epsilon = static_cast<float>(config.rms_epsilon);
  Buffers::Private& own = buffers_.workers[worker];
  Rows& normed = buffers_.normed;

  const auto round = [&](Rows& all, const kernels::cpu::PackedMatrix& next, const Share& share) {
    for (std::int64_t r = share.begin; r < share.end; ++r) {
      all.round(kernels, precision_for(next), r, 0, all.stride());
    }
    barrier_.wait();
  };
  const auto norm = [&](const std::vector<float>& weight, const kernels::cpu::PackedMatrix& next) {
    for (std::int64_t t = rows.begin; t < rows.end; ++t) {
      kernels.rms_norm(x(t), weight.data(), epsilon, config.hidden, normed.row(t));
    }
    round(normed, next, rows);
  };
  const auto gather = [&](PartsOf of, float* values, std::int64_t num_rows, std::int64_t stride) {
    meet(worker, [&] { machine_.parts->gather(of, values, num_rows, stride); });
    barrier_.wait();
  };

  norm(layer.attention_norm, layer.qkv);
  attend_together(index, normed, worker);
  gather(PartsOf::attended, buffers_.attended.row(0), tokens, buffers_.attended.stride());
  round(buffers_.attended, layer.o, rows);
  share_product({.weights = layer.o,
                 .precision = precision_for(layer.o),
                 .group_end = layer.o.num_groups(),
                 .num_tokens = tokens,
                 .x = buffers_.attended.view(),
                 .bias = layer.o_bias.data(),
                 .output = kernels::cpu::Output::accumulate,
                 .out = buffers_.x.data() + slice.o_outputs.begin,
                 .out_stride = config.hidden},
                worker);
  barrier_.wait();
  gather(PartsOf::attention_out, buffers_.x.data(), tokens, config.hidden);

  const PackedExpert& any = layer.held_expert();
  norm(layer.mlp_norm, any.gate_up);
  route(rows.begin, rows.end - rows.begin, layer, normed, buffers_.router.data(),
        buffers_.chosen.data(), buffers_.chosen_weights.data());
  barrier_.wait();
  show_routing(index, worker);
  Routing& routing = own.routing;
  group_by_expert(buffers_.chosen.data(), buffers_.chosen_weights.data(), tokens,
                  experts_per_token(), config.num_experts, routing);
  count_experts(index, routing, worker);
  gate_up_rows(layer, routing, normed, worker);
  barrier_.wait();
  // Slots of experts that this rank has a part of lie together; ranks that share them, too.
  const std::int64_t first_slot = routing.first_slot[slice.experts.begin];
  const std::int64_t num_slots = routing.first_slot[slice.experts.end] - first_slot;
  Share slots = share_of(num_slots, 1, worker, machine_.workers);
  slots.begin += first_slot;
  slots.end += first_slot;
  for (std::int64_t s = slots.begin; s < slots.end; ++s) {
    float* to = buffers_.activated.row(s) + slice.intermediate.begin;
    for (std::int64_t chunk = 0; chunk < config.intermediate / kBlock; ++chunk) {
      kernels.swiglu(buffers_.gate_up.row(s) + chunk * 2 * kBlock,
                     static_cast<float>(config.swiglu_limit), to + chunk * kBlock);
    }
  }
  barrier_.wait();
  gather(PartsOf::activated, buffers_.activated.row(first_slot), num_slots,
         buffers_.activated.stride());
  round(buffers_.activated, any.down, slots);
  for (std::int64_t e = slice.experts.begin; e < slice.experts.end; ++e) {
    const PackedExpert& expert = layer.experts[e];
    const std::int64_t first = routing.first_slot[e];
    if (routing.first_slot[e + 1] == first) continue;
    share_product({.weights = expert.down,
                   .precision = precision_for(expert.down),
                   .group_end = expert.down.num_groups(),
                   .num_tokens = routing.first_slot[e + 1] - first,
                   .x = buffers_.activated.view(first),
                   .bias = expert.down_bias.data(),
                   .out = buffers_.expert_out.row(first) + slice.down_outputs.begin,
                   .out_stride = buffers_.expert_out.stride()},
                  worker);
  }
  barrier_.wait();
  meet(worker, [&] {
    machine_.parts->gather_experts(buffers_.expert_out.row(0), buffers_.expert_out.stride(),
                                   routing.first_slot);
  });
  barrier_.wait();
  const Share columns = share_of(config.hidden, kGroupRows, worker, machine_.workers);
  for (std::int64_t e = 0; e < config.num_experts; ++e) {
    add_slots(routing, e, columns, buffers_.x.data());
  }
  barrier_.wait();
}

}  // namespace gauntlet::engine::cpu
