#include "engine/cuda/forward.h"

#include <algorithm>

#include "kernels/cuda/decode_attention.h"
#include "kernels/cuda/naive_attention.h"
#include "kernels/cuda/prefill_attention.h"
#include "kernels/cuda/rope_kv.h"
#include "kernels/cuda/router.h"
#include "kernels/cuda/rows.h"
#include "kernels/cuda/skinny_product.h"

namespace gauntlet::engine {
namespace {

using namespace kernels::cuda;

/// Up to here a plain product reads its weights once with the skinny kernel.
constexpr std::int64_t kSkinnyTokens = 16;
/// Slots per expert, on average, from which on the wide kernel is faster.
constexpr std::int64_t kWideSlotsPerExpert = 12;
/// Where a sequence's positions are cut when bits must not depend on the batch.
constexpr int kFixedPagesPerSplit = 4;
/// The tile of prompts when bits must not depend on the batch.
constexpr WideTile kFixedTile{.tokens = 128, .consumers = 2};
/// Scores of the naive attention, in pieces of this size.
constexpr std::int64_t kNaiveBytes = std::int64_t{256} << 20;

bool fixed(const CudaPlan& plan) { return plan.determinism == Determinism::per_request; }

int pages_per_split(const DecodeShape& shape, const CudaPlan& plan) {
  return fixed(plan) ? kFixedPagesPerSplit : choose_pages_per_split(shape);
}

}  // namespace

std::int64_t Forward::attention_bytes(const model::ModelConfig& config, const CudaPlan& plan,
                                      std::int64_t sequences, std::int64_t max_context) {
  if (plan.attention == AttentionKind::naive) {
    const auto row = static_cast<std::int64_t>(
        naive_row_bytes(static_cast<int>(config.num_heads), static_cast<int>(max_context)));
    return std::max(kNaiveBytes, row);
  }
  // Fewer sequences are split finer: the most partials lie somewhere between.
  std::int64_t most = 0;
  for (std::int64_t count = 1; count <= sequences; ++count) {
    const DecodeShape shape{.num_sequences = static_cast<int>(count),
                            .num_kv_heads = static_cast<int>(config.num_kv_heads),
                            .max_context = static_cast<int>(max_context),
                            .num_sms = plan.num_sms};
    most = std::max(
        most, static_cast<std::int64_t>(decode_partial_bytes(shape, pages_per_split(shape, plan))));
  }
  return most;
}

Forward::Forward(const DeviceModel& model, const CudaPlan& plan, const Buffers& buffers,
                 const BufferSizes& sizes, const KvMemory& kv)
    : model_(model), plan_(plan), buffers_(buffers), kv_(kv) {
  wide_ = plan.pipelines == Pipelines::bulk;
  if (!wide_) return;
  const model::ModelConfig& config = model.config;
  const std::int64_t slots = sizes.tokens * config.experts_per_token;
  const auto describe = [](const __nv_bfloat16* x, std::int64_t rows, std::int64_t cols,
                           WideInput& input) {
    make_wide_input({.x = x, .rows = rows, .cols = cols, .stride = Buffers::stride(cols)}, input);
  };
  describe(buffers.normed, sizes.tokens, config.hidden, normed_);
  describe(buffers.attended, sizes.tokens, config.query_width(), attended_);
  describe(buffers.permuted, slots, config.hidden, permuted_);
  describe(buffers.activated, slots, config.intermediate, activated_);
  describe(buffers.final_rows, kLogitRows, config.hidden, final_rows_);
}

bool Forward::takes_wide(const Step& step, const Product& product) const {
  if (!wide_) return false;
  if (fixed(plan_)) return step.shape.max_query > 1;
  const int experts = product.groups.num_experts;
  return experts > 0 ? product.num_columns >= kWideSlotsPerExpert * experts
                     : product.num_columns > kSkinnyTokens;
}

void Forward::product(const Step& step, const Product& product, const WideInput& input) {
  const int experts = product.groups.num_experts;
  if (takes_wide(step, product)) {
    const WideTile tile = fixed(plan_) ? kFixedTile
                                       : choose_wide_tile({.format = product.weights.format,
                                                           .rows = product.weights.rows,
                                                           .cols = product.weights.cols,
                                                           .num_columns = product.num_columns,
                                                           .num_experts = experts,
                                                           .num_sms = plan_.num_sms});
    return wide_product(product, input, tile, step.how);
  }
  const std::int64_t expected =
      experts > 0 ? 2 * product.num_columns / experts : product.num_columns;
  skinny_product(product, choose_skinny_tile(product, expected, plan_.num_sms), step.how);
}

void Forward::run(const StepShape& shape, const StepPointers& inputs, cudaStream_t stream,
                  LayerProbe* probe) {
  const Step step{shape,
                  inputs,
                  {.stream = stream,
                   .overlap = plan_.dependent_launch == DependentLaunch::on ? Overlap::dependent
                                                                            : Overlap::none},
                  probe};
  // What comes before is a copy, not a kernel: nothing to overlap with.
  embed({.table = model_.embedding,
         .ids = inputs.ids,
         .x = buffers_.x,
         .num_tokens = shape.tokens,
         .hidden = model_.config.hidden},
        {.stream = stream});
  for (std::size_t l = 0; l < model_.layers.size(); ++l) {
    layer(step, l);
    if (probe != nullptr) show_layer(step, l);
  }
  if (shape.logit_rows > 0) logits(step);
}

void Forward::layer(const Step& step, std::size_t index) {
  const DeviceLayer& layer = model_.layers[index];
  const model::ModelConfig& config = model_.config;
  norm({.x = buffers_.x,
        .experts = index > 0 ? buffers_.experts : nullptr,
        .num_experts = static_cast<int>(config.experts_per_token),
        .weight = layer.attention_norm,
        .epsilon = static_cast<float>(config.rms_epsilon),
        .out = buffers_.normed,
        .out_stride = Buffers::stride(config.hidden),
        .num_tokens = step.shape.tokens,
        .hidden = config.hidden},
       step.how);
  product(step,
          {.weights = layer.qkv,
           .x = buffers_.normed,
           .x_stride = Buffers::stride(config.hidden),
           .num_columns = step.shape.tokens,
           .bias = layer.qkv_bias,
           .epilogue = Epilogue::store_f32,
           .out = buffers_.qkv,
           .out_stride = layer.qkv.rows},
          normed_);
  attention(step, index);
  product(step,
          {.weights = layer.o,
           .x = buffers_.attended,
           .x_stride = Buffers::stride(config.query_width()),
           .num_columns = step.shape.tokens,
           .bias = layer.o_bias,
           .epilogue = Epilogue::add_f32,
           .out = buffers_.x,
           .out_stride = config.hidden},
          attended_);
  experts(step, index);
}

void Forward::attention(const Step& step, std::size_t index) {
  const DeviceLayer& layer = model_.layers[index];
  const model::ModelConfig& config = model_.config;
  const KvGroup group = kv_.group_of(index);
  const AttentionBatch batch{.num_sequences = step.shape.sequences,
                             .num_tokens = step.shape.tokens,
                             .first_token = step.inputs.first_token,
                             .context = step.inputs.context,
                             .table = step.inputs.tables[static_cast<int>(group)],
                             .token_sequence = step.inputs.token_sequence,
                             .table_stride = step.shape.table_stride,
                             .max_query = step.shape.max_query,
                             .max_context = step.shape.max_context()};
  rope_kv({.qkv = buffers_.qkv,
           .qkv_stride = layer.qkv.rows,
           .rope = model_.rope,
           .q = buffers_.q,
           .num_heads = static_cast<int>(config.num_heads),
           .cache = kv_.layer(index),
           .batch = batch},
          step.how);
  const Attention work{
      .q = buffers_.q,
      .out = buffers_.attended,
      .sinks = layer.sinks,
      .cache = kv_.layer(index),
      .batch = batch,
      .num_heads = static_cast<int>(config.num_heads),
      .window = group == KvGroup::sliding ? static_cast<int>(config.sliding_window) : 0};
  if (plan_.attention == AttentionKind::naive) {
    return naive_attention(work,
                           {.scores = reinterpret_cast<float*>(buffers_.attention),
                            .bytes = static_cast<std::size_t>(buffers_.attention_bytes)},
                           step.how);
  }
  if (step.shape.max_query > 1) return prefill_attention(work, step.how);
  const DecodeShape shape{.num_sequences = step.shape.sequences,
                          .num_kv_heads = static_cast<int>(config.num_kv_heads),
                          .max_context = step.shape.max_context(),
                          .window = work.window,
                          .num_sms = plan_.num_sms};
  decode_attention(work,
                   {.pages_per_split = pages_per_split(shape, plan_),
                    .partials = buffers_.attention,
                    .arrived = buffers_.arrived},
                   step.how);
}

void Forward::experts(const Step& step, std::size_t index) {
  const DeviceLayer& layer = model_.layers[index];
  const model::ModelConfig& config = model_.config;
  const int num_experts = static_cast<int>(config.num_experts);
  const int per_token = static_cast<int>(config.experts_per_token);
  std::int32_t* first_slot =
      buffers_.first_slot + static_cast<std::int64_t>(index) * (num_experts + 1);
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
                      .normed_stride = Buffers::stride(config.hidden),
                      .chosen = buffers_.chosen,
                      .weights = buffers_.chosen_weights};
  const Deal dealt{.chosen = buffers_.chosen,
                   .weights = buffers_.chosen_weights,
                   .num_tokens = step.shape.tokens,
                   .num_experts = num_experts,
                   .experts_per_token = per_token,
                   .first_slot = first_slot,
                   .slot_token = buffers_.slot_token,
                   .slot_row = buffers_.slot_row,
                   .slot_weight = buffers_.slot_weight};
  if (step.shape.tokens <= kMostDealtTokens && step.probe == nullptr) {
    route_and_deal(router, dealt, buffers_.routed, step.how);
  } else {
    route(router, step.how);
    if (step.probe != nullptr) show_routing(step, index);
    deal(dealt, step.how);
  }
  Product gate_up{.weights = layer.gate_up,
                  .x = buffers_.normed,
                  .x_stride = Buffers::stride(config.hidden),
                  .num_columns = std::int64_t{step.shape.tokens} * per_token,
                  .bias = layer.gate_up_bias,
                  .epilogue = Epilogue::swiglu_bf16,
                  .out = buffers_.activated,
                  .out_stride = Buffers::stride(config.intermediate),
                  .groups = {.num_experts = num_experts,
                             .first_slot = first_slot,
                             .slot_token = buffers_.slot_token,
                             .slot_row = buffers_.slot_row,
                             .slot_weight = buffers_.slot_weight},
                  .swiglu_limit = static_cast<float>(config.swiglu_limit)};
  Product down = gate_up;
  if (takes_wide(step, gate_up)) {
    gather({.x = buffers_.normed,
            .rows = buffers_.slot_token,
            .out = buffers_.permuted,
            .stride = Buffers::stride(config.hidden),
            .most_rows = gate_up.num_columns,
            .num_rows = first_slot + num_experts},
           step.how);
    gate_up.x = buffers_.permuted;
    gate_up.groups.slot_token = nullptr;
  }
  product(step, gate_up, permuted_);
  down.weights = layer.down;
  down.x = buffers_.activated;
  down.x_stride = Buffers::stride(config.intermediate);
  down.bias = layer.down_bias;
  down.epilogue = Epilogue::weighted_f32;
  down.out = buffers_.experts;
  down.out_stride = config.hidden;
  down.groups.slot_token = nullptr;
  down.groups.dealt = Dealt::earlier;
  product(step, down, activated_);
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

/// The experts' part is added by the next layer's norm: here it is added on the host.
void Forward::show_layer(const Step& step, std::size_t index) const {
  const auto hidden = static_cast<std::size_t>(model_.config.hidden);
  const auto tokens = static_cast<std::size_t>(step.shape.tokens);
  const auto ranks = static_cast<std::size_t>(model_.config.experts_per_token);
  std::vector<float> x(tokens * hidden), experts(tokens * ranks * hidden);
  const auto bring = [&](std::vector<float>& to, const float* from) {
    cuda_check(cudaMemcpyAsync(to.data(), from, to.size() * sizeof(float), cudaMemcpyDeviceToHost,
                               step.how.stream));
    cuda_check(cudaStreamSynchronize(step.how.stream));
  };
  bring(x, buffers_.x);
  bring(experts, buffers_.experts);
  for (std::size_t t = 0; t < tokens; ++t) {
    for (std::size_t r = 0; r < ranks; ++r) {
      for (std::size_t i = 0; i < hidden; ++i) {
        x[t * hidden + i] += experts[(t * ranks + r) * hidden + i];
      }
    }
  }
  step.probe->finished(static_cast<std::int64_t>(index), x);
}

void Forward::logits(const Step& step) {
  const model::ModelConfig& config = model_.config;
  for (int first = 0; first < step.shape.logit_rows; first += kLogitRows) {
    const int rows = std::min(kLogitRows, step.shape.logit_rows - first);
    norm({.x = buffers_.x,
          .experts = buffers_.experts,
          .num_experts = static_cast<int>(config.experts_per_token),
          .weight = model_.final_norm,
          .epsilon = static_cast<float>(config.rms_epsilon),
          .rows = step.inputs.logit_rows + first,
          .out = buffers_.final_rows,
          .out_stride = Buffers::stride(config.hidden),
          .num_tokens = rows,
          .hidden = config.hidden},
         step.how);
    product(step,
            {.weights = model_.lm_head,
             .x = buffers_.final_rows,
             .x_stride = Buffers::stride(config.hidden),
             .num_columns = rows,
             .epilogue = Epilogue::store_f32,
             .out = buffers_.logits,
             .out_stride = config.vocab},
            final_rows_);
    const Sample work{
        .logits = buffers_.logits,
        .stride = config.vocab,
        .num_rows = rows,
        .vocab = config.vocab,
        .targets = step.shape.targets ? step.inputs.targets + first : nullptr,
        .params = step.inputs.params + first,
        .allowed = step.shape.mask_words > 0
                       ? step.inputs.allowed + std::int64_t{first} * step.shape.mask_words
                       : nullptr,
        .allowed_words = step.shape.mask_words,
        .out = buffers_.choices + first,
        .weights = buffers_.draw_weights};
    if (step.shape.greedy) {
      sample_greedy(work, buffers_.greedy, step.how);
    } else {
      sample(work, step.how);
    }
  }
}

}  // namespace gauntlet::engine
