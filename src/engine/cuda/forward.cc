#include "engine/cuda/forward.h"

#include <algorithm>

#include "kernels/cuda/attention/decode_attention.h"
#include "kernels/cuda/attention/naive_attention.h"
#include "kernels/cuda/attention/prefill_attention.h"
#include "kernels/cuda/attention/rope_kv.h"
#include "kernels/cuda/rows/rows.h"
#include "kernels/cuda/rows/unfused.h"

namespace gauntlet::engine::cuda {
namespace {

using namespace kernels::cuda;

/// Where a sequence's positions are cut when bits must not depend on the batch.
constexpr int kFixedPagesPerSplit = 4;
/// Scores of the naive attention, in pieces of this size.
constexpr std::int64_t kNaiveBytes = std::int64_t{256} << 20;

int pages_per_split(const DecodeShape& shape, const CudaPlan& plan) {
  return plan.variants.determinism == Determinism::per_request ? kFixedPagesPerSplit
                                                               : choose_pages_per_split(shape);
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
                 const BufferSizes& sizes, const KvMemory& kv, Extras extras)
    : model_(model),
      plan_(plan),
      buffers_(buffers),
      kv_(kv),
      extras_(std::move(extras)),
      num_tokens_(sizes.tokens),
      products_(model.config, plan, buffers, sizes) {}

void Forward::run(const DeviceStep& work, cudaStream_t stream, LayerProbe* probe) {
  const StepShape& shape = work.shape;
  const Step step{
      shape,
      work.inputs,
      work.choices,
      {.stream = stream,
       .overlap = plan_.variants.dependent_launch == DependentLaunch::on ? Overlap::dependent
                                                                         : Overlap::none},
      probe};
  // What comes before is a copy, not a kernel: nothing to overlap with.
  embed({.table = model_.embedding,
         .ids = work.inputs.ids,
         .late = work.late,
         .x = buffers_.x,
         .num_tokens = shape.tokens,
         .hidden = model_.config.hidden},
        {.stream = stream});
  for (std::size_t l = 0; l < model_.layers.size(); ++l) {
    layer(step, l);
    if (probe != nullptr) show_layer(step, l);
  }
  if (exports(model_.config.num_layers - 1)) settle(step);
  if (shape.logit_rows > 0) logits(step);
}

Forward::Addend Forward::left_to_add(std::int64_t layers_before) const {
  if (!is_fused() || layers_before == 0) return {};
  if (!is_whole()) return {.rows = buffers_.projected, .per_token = 1};
  return {.rows = buffers_.experts, .per_token = static_cast<int>(model_.config.experts_per_token)};
}

bool Forward::exports(std::int64_t layer) const {
  return std::ranges::find(extras_.export_layers, layer) != extras_.export_layers.end();
}

float* Forward::exported(std::int64_t layer) const {
  if (!exports(layer)) return nullptr;
  const auto& layers = extras_.export_layers;
  const std::int64_t index = std::ranges::find(layers, layer) - layers.begin();
  return buffers_.residuals + index * num_tokens_ * model_.config.hidden;
}

void Forward::settle(const Step& step) {
  const Addend left = left_to_add(model_.config.num_layers);
  norm({.x = buffers_.x,
        .experts = left.rows,
        .num_experts = left.per_token,
        .weight = model_.final_norm,
        .epsilon = static_cast<float>(model_.config.rms_epsilon),
        .out = buffers_.normed,
        .out_stride = Buffers::stride(model_.config.hidden),
        .sums = exported(model_.config.num_layers - 1),
        .num_tokens = step.shape.tokens,
        .hidden = model_.config.hidden},
       is_whole() ? step.how : Launch{.stream = step.how.stream});
}

void Forward::add_up(const Step& step, SumOf of) {
  extras_.rank_sum->add_up({.values = buffers_.projected,
                            .rows = step.shape.tokens,
                            .width = model_.config.hidden,
                            .of = of},
                           step.how.stream);
}

void Forward::add_projected(const Step& step) {
  // Behind a sum over ranks, which need not be a kernel, nothing starts early.
  add_residual({.x = buffers_.x,
                .y = buffers_.projected,
                .num_tokens = step.shape.tokens,
                .hidden = model_.config.hidden},
               is_whole() ? step.how : Launch{.stream = step.how.stream});
}

void Forward::layer(const Step& step, std::size_t index) {
  const DeviceLayer& layer = model_.layers[index];
  const model::ModelConfig& config = model_.config;
  const Addend left = left_to_add(static_cast<std::int64_t>(index));
  norm({.x = buffers_.x,
        .experts = left.rows,
        .num_experts = left.per_token,
        .weight = layer.attention_norm,
        .epsilon = static_cast<float>(config.rms_epsilon),
        .out = buffers_.normed,
        .out_stride = Buffers::stride(config.hidden),
        .sums = exported(static_cast<std::int64_t>(index) - 1),
        .num_tokens = step.shape.tokens,
        .hidden = config.hidden},
       is_whole() ? step.how : Launch{.stream = step.how.stream});
  products_.run(step, {.weights = layer.qkv,
                       .input = ProductInput::normed,
                       .num_columns = step.shape.tokens,
                       .bias = layer.qkv_bias,
                       .out = buffers_.qkv,
                       .out_stride = layer.qkv.rows()});
  attention(step, index);
  const bool adds = is_fused() && is_whole();
  products_.run(step, {.weights = layer.o,
                       .input = ProductInput::attended,
                       .num_columns = step.shape.tokens,
                       .bias = layer.o_bias,
                       .epilogue = adds ? Epilogue::add_f32 : Epilogue::store_f32,
                       .out = adds ? buffers_.x : buffers_.projected,
                       .out_stride = config.hidden});
  if (!is_whole()) add_up(step, SumOf::attention);
  if (!adds) add_projected(step);
  experts(step, index);
}

void Forward::rotate_and_store(const Step& step, std::size_t index, const AttentionBatch& batch) {
  const KvCache& cache = kv_.layer(index);
  const std::int64_t stride = model_.layers[index].qkv.rows();
  const int num_heads = static_cast<int>(model_.config.num_heads);
  if (is_fused()) {
    return rope_kv({.qkv = buffers_.qkv,
                    .qkv_stride = stride,
                    .rope = model_.rope,
                    .q = buffers_.q,
                    .num_heads = num_heads,
                    .cache = cache,
                    .batch = batch},
                   step.how);
  }
  rope({.qkv = buffers_.qkv,
        .qkv_stride = stride,
        .rope = model_.rope,
        .q = buffers_.q,
        .num_heads = num_heads,
        .num_kv_heads = cache.num_kv_heads,
        .batch = batch},
       step.how);
  store_kv({.qkv = buffers_.qkv,
            .qkv_stride = stride,
            .num_heads = num_heads,
            .cache = cache,
            .batch = batch},
           step.how);
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
  const bool decodes = plan_.attention == AttentionKind::flash && step.shape.max_query <= 1;
  // The joined kernel reads earlier positions while they are stored: guesses see each other's.
  const bool joins = decodes && is_fused() && !step.shape.guesses;
  if (!joins) rotate_and_store(step, index, batch);
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
  if (!decodes) return prefill_attention(work, step.how);
  const DecodeShape shape{.num_sequences = step.shape.sequences,
                          .num_kv_heads = static_cast<int>(config.num_kv_heads),
                          .max_context = step.shape.max_context(),
                          .window = work.window,
                          .num_sms = plan_.num_sms};
  const DecodeSplit split{.pages_per_split = pages_per_split(shape, plan_),
                          .partials = buffers_.attention,
                          .arrived = buffers_.arrived};
  if (!joins) return decode_attention(work, split, step.how);
  rope_decode_attention(work,
                        {.qkv = buffers_.qkv, .qkv_stride = layer.qkv.rows(), .rope = model_.rope},
                        split, step.how);
}

void Forward::logits(const Step& step) {
  const model::ModelConfig& config = model_.config;
  const bool is_settled = exports(config.num_layers - 1);
  const Addend left = is_settled ? Addend{} : left_to_add(config.num_layers);
  for (int first = 0; first < step.shape.logit_rows; first += kLogitRows) {
    const int rows = std::min(kLogitRows, step.shape.logit_rows - first);
    norm({.x = buffers_.x,
          .experts = left.rows,
          .num_experts = left.per_token,
          .weight = model_.final_norm,
          .epsilon = static_cast<float>(config.rms_epsilon),
          .rows = step.inputs.logit_rows + first,
          .out = buffers_.final_rows,
          .out_stride = Buffers::stride(config.hidden),
          .num_tokens = rows,
          .hidden = config.hidden},
         is_whole() ? step.how : Launch{.stream = step.how.stream});
    products_.run(step, {.weights = model_.lm_head,
                         .input = ProductInput::final_rows,
                         .num_columns = rows,
                         .out = buffers_.logits + extras_.first_logit,
                         .out_stride = config.vocab});
    if (divides_vocabulary()) {
      extras_.rank_sum->gather({.values = buffers_.logits, .rows = rows, .stride = config.vocab},
                               step.how.stream);
    }
    const Launch behind = divides_vocabulary() ? Launch{.stream = step.how.stream} : step.how;
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
        .out = step.choices + first};
    if (step.shape.greedy) {
      sample_greedy(work, behind);
    } else {
      sample(work, behind);
    }
  }
}

}  // namespace gauntlet::engine::cuda
