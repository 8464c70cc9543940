// The second half of a layer, and what a probe is shown of it.
#include "engine/cuda/forward.h"
#include "kernels/cuda/routing/router.h"
#include "kernels/cuda/rows/rows.h"
#include "kernels/cuda/rows/unfused.h"

namespace gauntlet::engine::cuda {

using namespace kernels::cuda;

void Forward::route(const Step& step, std::size_t index) {
  const DeviceLayer& layer = model_.layers[index];
  const model::ModelConfig& config = model_.config;
  const int num_experts = static_cast<int>(config.num_experts);
  const int per_token = static_cast<int>(config.experts_per_token);
  const std::int64_t stride = Buffers::stride(config.hidden);
  const Router router{.x = buffers_.x,
                      .norm_weight = layer.mlp_norm,
                      .epsilon = static_cast<float>(config.rms_epsilon),
                      .weight = layer.router,
                      .bias = layer.router_bias,
                      .hidden = config.hidden,
                      .num_tokens = step.shape.tokens,
                      .real_tokens = step.inputs.real_tokens,
                      .num_experts = num_experts,
                      .experts_per_token = per_token,
                      .num_sms = plan_.num_sms,
                      .normed = buffers_.normed,
                      .normed_stride = stride,
                      .chosen = buffers_.chosen,
                      .weights = buffers_.chosen_weights};
  const Dispatch dispatched{.chosen = buffers_.chosen,
                            .weights = buffers_.chosen_weights,
                            .num_tokens = step.shape.tokens,
                            .num_experts = num_experts,
                            .experts_per_token = per_token,
                            .first_slot = first_slot(index),
                            .slot_token = buffers_.slot_token,
                            .slot_row = buffers_.slot_row,
                            .slot_weight = buffers_.slot_weight};
  if (is_fused() && step.shape.tokens <= kMostDispatchTokens && step.probe == nullptr) {
    return route_and_dispatch(router, dispatched, buffers_.routed, step.how);
  }
  if (is_fused()) {
    kernels::cuda::route(router, step.how);
  } else {
    route_op_by_op(step, router);
  }
  if (step.probe != nullptr) show_routing(step, index);
  dispatch(dispatched, step.how);
}

void Forward::route_op_by_op(const Step& step, const Router& router) {
  norm({.x = buffers_.x,
        .weight = router.norm_weight,
        .epsilon = router.epsilon,
        .out = router.normed,
        .out_stride = router.normed_stride,
        .unrounded = buffers_.unrounded,
        .num_tokens = router.num_tokens,
        .hidden = router.hidden},
       step.how);
  router_logits({.x = buffers_.unrounded,
                 .weight = router.weight,
                 .bias = router.bias,
                 .hidden = router.hidden,
                 .num_tokens = router.num_tokens,
                 .num_experts = router.num_experts,
                 .logits = buffers_.router_logits},
                step.how);
  choose_experts({.logits = buffers_.router_logits,
                  .logits_stride = router.num_experts,
                  .num_tokens = router.num_tokens,
                  .real_tokens = router.real_tokens,
                  .num_experts = router.num_experts,
                  .experts_per_token = router.experts_per_token,
                  .chosen = router.chosen,
                  .weights = router.weights},
                 step.how);
}

void Forward::experts(const Step& step, std::size_t index) {
  const DeviceLayer& layer = model_.layers[index];
  const model::ModelConfig& config = model_.config;
  const int per_token = static_cast<int>(config.experts_per_token);
  const std::int64_t slots = std::int64_t{step.shape.tokens} * per_token;
  route(step, index);
  const std::int32_t* num_slots = first_slot(index) + config.num_experts;
  const model::Range& held = model_.experts;
  Groups groups{.num_experts = static_cast<int>(held.size()),
                .first_slot = first_slot(index) + held.begin,
                .slot_token = buffers_.slot_token,
                .slot_row = buffers_.slot_row,
                .slot_weight = buffers_.slot_weight};
  LayerProduct gate_up{.weights = layer.gate_up,
                       .input = ProductInput::normed,
                       .num_columns = slots,
                       .bias = layer.gate_up_bias,
                       .epilogue = is_fused() ? Epilogue::swiglu_bf16 : Epilogue::store_f32,
                       .out = buffers_.gate_up,
                       .out_stride = layer.gate_up.rows(),
                       .groups = groups,
                       .swiglu_limit = static_cast<float>(config.swiglu_limit)};
  if (is_fused()) {
    gate_up.out = buffers_.activated;
    gate_up.out_stride = Buffers::stride(config.intermediate);
  }
  if (products_.takes_slot_order(step, gate_up)) {
    gather({.x = buffers_.normed,
            .rows = buffers_.slot_token,
            .out = buffers_.permuted,
            .stride = Buffers::stride(config.hidden),
            .most_rows = slots,
            .num_rows = num_slots},
           step.how);
    gate_up.input = ProductInput::permuted;
    gate_up.groups.slot_token = nullptr;
    gate_up.groups.dispatched = Dispatched::earlier;  // the gather stands between
  }
  products_.run(step, gate_up);
  if (!is_fused()) {
    swiglu({.gate_up = buffers_.gate_up,
            .gate_up_stride = gate_up.out_stride,
            .out = buffers_.activated,
            .out_stride = Buffers::stride(config.intermediate),
            .width = config.intermediate,
            .most_rows = slots,
            .num_rows = num_slots,
            .limit = gate_up.swiglu_limit},
           step.how);
  }
  groups.slot_token = nullptr;
  groups.dispatched = Dispatched::earlier;
  const bool weighs = is_fused() && is_whole();  // the norm after it adds
  products_.run(step, {.weights = layer.down,
                       .input = ProductInput::activated,
                       .num_columns = slots,
                       .bias = layer.down_bias,
                       .epilogue = weighs ? Epilogue::weighted_f32 : Epilogue::store_f32,
                       .out = buffers_.experts,
                       .out_stride = config.hidden,
                       .groups = groups});
  if (weighs) return;
  const WeightedCombine combine{.x = is_whole() ? buffers_.x : buffers_.projected,
                                .y = buffers_.experts,
                                .hidden = config.hidden,
                                .num_tokens = step.shape.tokens,
                                .experts_per_token = per_token,
                                .chosen = buffers_.chosen,
                                .weights = buffers_.chosen_weights,
                                .first_slot = first_slot(index),
                                .slot_token = buffers_.slot_token,
                                .first_expert = static_cast<int>(held.begin),
                                .end_expert = static_cast<int>(held.end)};
  if (is_whole()) return weighted_combine(combine, step.how);
  const auto bytes = static_cast<std::size_t>(combine.num_tokens * combine.hidden) * sizeof(float);
  cuda_check(cudaMemsetAsync(buffers_.projected, 0, bytes, step.how.stream));
  weighted_combine(combine, {.stream = step.how.stream});
  add_up(step, SumOf::experts);
  if (!is_fused()) add_projected(step);
}

void Forward::show_routing(const Step& step, std::size_t index) const {
  const auto picks = static_cast<std::size_t>(step.shape.tokens * model_.config.experts_per_token);
  std::vector<std::int32_t> chosen(picks);
  std::vector<float> weights(picks);
  const auto move = [&](auto* to, const auto* from, cudaMemcpyKind way) {
    cuda_check(cudaMemcpyAsync(to, from, picks * sizeof(*to), way, step.how.stream));
    cuda_check(cudaStreamSynchronize(step.how.stream));
  };
  move(chosen.data(), buffers_.chosen, cudaMemcpyDeviceToHost);
  move(weights.data(), buffers_.chosen_weights, cudaMemcpyDeviceToHost);
  step.probe->routed(static_cast<std::int64_t>(index), chosen, weights);
  move(buffers_.chosen, chosen.data(), cudaMemcpyHostToDevice);
  move(buffers_.chosen_weights, weights.data(), cudaMemcpyHostToDevice);
}

/// What a layer leaves to be added by the next norm: here the host adds it.
void Forward::show_layer(const Step& step, std::size_t index) const {
  const auto hidden = static_cast<std::size_t>(model_.config.hidden);
  const auto tokens = static_cast<std::size_t>(step.shape.tokens);
  const Addend left = left_to_add(static_cast<std::int64_t>(index) + 1);
  const auto ranks = static_cast<std::size_t>(left.per_token);
  std::vector<float> x(tokens * hidden), experts(tokens * ranks * hidden);
  const auto bring = [&](std::vector<float>& to, const float* from) {
    cuda_check(cudaMemcpyAsync(to.data(), from, to.size() * sizeof(float), cudaMemcpyDeviceToHost,
                               step.how.stream));
    cuda_check(cudaStreamSynchronize(step.how.stream));
  };
  bring(x, buffers_.x);
  if (left.rows != nullptr) bring(experts, left.rows);
  for (std::size_t t = 0; t < tokens; ++t) {
    for (std::size_t r = 0; r < ranks; ++r) {
      for (std::size_t i = 0; i < hidden; ++i) {
        x[t * hidden + i] += experts[(t * ranks + r) * hidden + i];
      }
    }
  }
  step.probe->finished(static_cast<std::int64_t>(index), x);
}

}  // namespace gauntlet::engine::cuda
