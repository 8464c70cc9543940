#include "engine/cuda/draft/draft_head.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstring>

#include "core/check.h"
#include "core/os/threads.h"
#include "engine/cuda/draft/draft_head_parts.h"
#include "kernels/cuda/attention/rope_kv.h"
#include "kernels/cuda/product/decode_product.h"
#include "kernels/cuda/rows/draft_rows.h"
#include "kernels/cuda/rows/rows.h"

namespace gauntlet::engine::cuda::inline draft {
namespace {

using namespace kernels::cuda;
using namespace head;
using model::EagleHeadConfig;

/// Up to here products read their weights once with the decode kernel.
constexpr int kDecodeTokens = 16;

/// As many as graphs are made for.
int padded(int count) {
  return count <= 8 ? count : static_cast<int>(std::bit_ceil(static_cast<unsigned>(count)));
}

}  // namespace

DraftHead::Inputs DraftHead::inputs_at(std::uint8_t* base, const StepShape& shape) const {
  Layout layout(base);
  Inputs inputs;
  inputs.residuals = layout.take<std::uint16_t>(shape.tokens * stride(head_.config.features()));
  inputs.embeddings = layout.take<std::uint16_t>(
      target_embedding_ != nullptr ? 0 : shape.tokens * head_.config.hidden);
  inputs.tokens = layout.take<std::int32_t>(shape.tokens);
  inputs.slots = layout.take<std::int32_t>(shape.tokens);
  inputs.context = layout.take<std::int32_t>(shape.tokens);
  inputs.table = layout.take<std::int32_t>(std::int64_t{shape.tokens} * shape.table_stride);
  inputs.last_rows = layout.take<std::int32_t>(shape.sequences);
  inputs.guess_context = layout.take<std::int32_t>(shape.sequences * shape.logit_rows);
  inputs.guess_table =
      layout.take<std::int32_t>(std::int64_t{shape.sequences} * shape.table_stride);
  inputs.bytes = layout.bytes();
  return inputs;
}

void DraftHead::embeddings_of(std::span<const std::int32_t> rows, std::uint16_t* out) const {
  const model::Matrix& from = embedding_;
  constexpr std::int64_t kGrain = 64;
  parallel_for(
      std::ssize(rows),
      [&](std::int64_t begin, std::int64_t end) {
        std::vector<float> floats(static_cast<std::size_t>(from.cols));
        for (std::int64_t i = begin; i < end; ++i) {
          from.read_row(rows[static_cast<std::size_t>(i)], floats.data());
          for (std::int64_t c = 0; c < from.cols; ++c) {
            const __nv_bfloat16 rounded = __float2bfloat16(floats[static_cast<std::size_t>(c)]);
            std::memcpy(out + i * from.cols + c, &rounded, sizeof(rounded));
          }
        }
      },
      kGrain);
}

void DraftHead::norm_residuals(std::span<float> row) const {
  if (!head_.config.norm_before_fc) return;
  double squares = 0;
  for (const float value : row) squares += static_cast<double>(value) * value;
  const auto scale = static_cast<float>(
      1 / std::sqrt(squares / static_cast<double>(row.size()) + head_.config.rms_epsilon));
  for (std::size_t i = 0; i < row.size(); ++i) row[i] *= scale * head_.fc_norm[i];
}

void DraftHead::upload(std::span<const HeadRow> rows, std::span<const HeadText> texts,
                       const StepShape& shape) {
  const EagleHeadConfig& config = head_.config;
  const Inputs host = inputs_at(host_inputs_.data(), shape);
  const bool all_kept =
      std::ranges::all_of(rows, [](const HeadRow& row) { return row.residuals == nullptr; });
  // Residuals stand first, and are what is large.
  const std::int64_t begin =
      all_kept ? reinterpret_cast<std::uint8_t*>(host.embeddings) - host_inputs_.data() : 0;
  const auto bytes = static_cast<std::size_t>(host.bytes - begin);
  uploaded_.wait();
  std::memset(host_inputs_.data() + begin, 0, bytes);
  const auto padding = static_cast<std::int32_t>(config_.num_pages);
  std::fill_n(host.table, std::int64_t{shape.tokens} * shape.table_stride, padding);
  std::fill_n(host.guess_table, std::int64_t{shape.sequences} * shape.table_stride, padding);
  std::fill_n(host.slots, shape.tokens, -1);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const HeadRow& row = rows[i];
    host.slots[i] = row.slot;
    if (row.residuals != nullptr) {
      std::copy_n(row.residuals, config.features(),
                  host.residuals + static_cast<std::int64_t>(i) * stride(config.features()));
    }
    host.context[i] = row.position;
    const auto& pages = texts[static_cast<std::size_t>(row.text)].pages;
    std::ranges::copy(pages, host.table + i * static_cast<std::size_t>(shape.table_stride));
    host.tokens[i] = row.token;
  }
  if (target_embedding_ == nullptr) embeddings_of({host.tokens, rows.size()}, host.embeddings);
  for (std::size_t t = 0; t < texts.size() && shape.logit_rows > 0; ++t) {
    host.last_rows[t] = texts[t].last_row;
    std::ranges::copy(texts[t].pages,
                      host.guess_table + t * static_cast<std::size_t>(shape.table_stride));
    const std::int32_t last = rows[static_cast<std::size_t>(texts[t].last_row)].position;
    for (int g = 0; g < shape.logit_rows; ++g) {
      host.guess_context[static_cast<std::size_t>(g * shape.sequences) + t] = last + g;
    }
  }
  cuda_check(cudaMemcpyAsync(inputs_ + begin, host_inputs_.data() + begin, bytes,
                             cudaMemcpyHostToDevice, stream_));
  uploaded_.record(stream_);
}

void DraftHead::keep(std::span<const JoinResiduals::Row> rows) {
  const EagleHeadConfig& config = head_.config;
  cuda_check(cudaSetDevice(config_.device));
  for (std::size_t first = 0; first < rows.size(); first += JoinResiduals::kMostRows) {
    const auto some =
        rows.subspan(first, std::min<std::size_t>(JoinResiduals::kMostRows, rows.size() - first));
    JoinResiduals work{.residuals = config_.seam.residuals,
                       .tokens = config_.seam.most_tokens,
                       .hidden = config.hidden,
                       .boundaries = static_cast<int>(std::ssize(config.boundaries)),
                       .weight = config.norm_before_fc ? fc_norm_ : nullptr,
                       .epsilon = static_cast<float>(config.rms_epsilon),
                       .out = kept_,
                       .out_stride = stride(config.features()),
                       .num_rows = static_cast<int>(some.size())};
    std::ranges::copy(some, work.rows);
    join_residuals(work, {.stream = stream_});
  }
}

void DraftHead::multiply(const Weights& weights, int rows, Epilogue epilogue, float* out,
                         const Launch& how) const {
  for (std::size_t p = 0; p < weights.parts.size(); ++p) {
    const Part& part = weights.parts[p];
    const Product work{.weights = part.weights,
                       .x = weights.x + part.first_col,
                       .x_stride = weights.x_stride,
                       .num_columns = rows,
                       .epilogue = p == 0 ? epilogue : Epilogue::add_f32,
                       .out = out,
                       .out_stride = weights.rows()};
    if (rows > kDecodeTokens && prefill_product_available()) {
      prefill_product(work, part.tiles,
                      choose_prefill_tile({.format = WeightFormat::bf16,
                                           .rows = part.weights.rows,
                                           .cols = part.weights.cols,
                                           .num_columns = rows,
                                           .num_sms = num_sms_}),
                      how);
    } else {
      decode_product(work, choose_decode_tile(work, rows, num_sms_), how);
    }
  }
}

void DraftHead::attend(RowsOf rows_of, const AttentionBatch& batch, const Launch& how) {
  const EagleHeadConfig& config = head_.config;
  const int num_heads = static_cast<int>(config.num_heads);
  const DecodeShape shape = decode_shape(config, batch.num_tokens, batch.max_context, num_sms_);
  const Attention work{.q = q_,
                       .out = attended_,
                       .sinks = sinks_,
                       .cache = cache_,
                       .batch = batch,
                       .num_heads = num_heads};
  const DecodeSplit split{
      .pages_per_split = choose_pages_per_split(shape), .partials = partials_, .arrived = arrived_};
  const NewTokens tokens{.qkv = qkv_out_, .qkv_stride = qkv_.rows(), .rope = rope_};
  if (rows_of == RowsOf::texts_apart) return rope_decode_attention(work, tokens, split, how);
  // Rows of one text see what the others of them have just stored.
  rope_kv({.qkv = tokens.qkv,
           .qkv_stride = tokens.qkv_stride,
           .rope = rope_,
           .q = q_,
           .num_heads = num_heads,
           .cache = cache_,
           .batch = batch},
          how);
  decode_attention(work, split, how);
}

float* DraftHead::layer(const Tokens& tokens, float* features, RowsOf rows_of,
                        const AttentionBatch& batch, cudaStream_t stream) {
  const EagleHeadConfig& config = head_.config;
  const Launch how{.stream = stream, .overlap = Overlap::dependent};
  const auto epsilon = static_cast<float>(config.rms_epsilon);
  const std::int64_t hidden = config.hidden;
  const int rows = batch.num_tokens;
  float* residual = config.norm_before_residual ? plain_ : features;
  join_inputs({.table = tokens.table,
               .ids = tokens.ids,
               .late = tokens.late,
               .features = features,
               .embedding_weight = input_norm_,
               .feature_weight = hidden_norm_,
               .epsilon = epsilon,
               .out = joined_,
               .out_stride = stride(2 * hidden),
               .unrounded = config.norm_before_residual ? plain_ : nullptr,
               .num_rows = rows,
               .hidden = hidden},
              how);
  multiply(qkv_, rows, Epilogue::store_f32, qkv_out_, how);
  attend(rows_of, batch, how);
  multiply(o_, rows, Epilogue::add_f32, residual, how);
  norm({.x = residual,
        .weight = mlp_norm_,
        .epsilon = epsilon,
        .out = normed_,
        .out_stride = stride(hidden),
        .num_tokens = rows,
        .hidden = hidden},
       how);
  multiply(gate_up_, rows, Epilogue::store_f32, gate_up_out_, how);
  silu_product({.gate_up = gate_up_out_,
                .out = activated_,
                .out_stride = stride(config.intermediate),
                .width = config.intermediate,
                .num_rows = rows},
               how);
  multiply(down_, rows, Epilogue::add_f32, residual, how);
  return residual;
}

void DraftHead::choose(float* features, const std::int32_t* rows, int count, RowChoice* out,
                       cudaStream_t stream) {
  const EagleHeadConfig& config = head_.config;
  const Launch how{.stream = stream, .overlap = Overlap::dependent};
  norm({.x = features,
        .weight = final_norm_,
        .epsilon = static_cast<float>(config.rms_epsilon),
        .rows = rows,
        .out = final_,
        .out_stride = stride(config.hidden),
        .sums = features == last_ ? nullptr : last_,
        .num_tokens = count,
        .hidden = config.hidden},
       how);
  multiply(lm_head_, count, Epilogue::store_f32, logits_, how);
  sample_greedy({.logits = logits_,
                 .stride = config.draft_vocab,
                 .num_rows = count,
                 .vocab = config.draft_vocab,
                 .out = out},
                how);
}

void DraftHead::compute(const StepShape& shape, cudaStream_t stream) {
  const Inputs inputs = inputs_at(inputs_, shape);
  const Launch how{.stream = stream, .overlap = Overlap::dependent};
  // What comes before is a copy, not a kernel: nothing to overlap with.
  Launch first{.stream = stream};
  AttentionBatch batch{.num_sequences = shape.tokens,
                       .num_tokens = shape.tokens,
                       .first_token = ascending_,
                       .context = inputs.context,
                       .table = inputs.table,
                       .token_sequence = ascending_,
                       .table_stride = shape.table_stride,
                       .max_query = 1,
                       .max_context = shape.max_context()};
  if (kept_ != nullptr) {
    take_kept({.kept = kept_,
               .slots = inputs.slots,
               .out = reinterpret_cast<__nv_bfloat16*>(inputs.residuals),
               .stride = stride(head_.config.features()),
               .num_rows = shape.tokens},
              first);
    first = how;
  }
  multiply(fc_, shape.tokens, Epilogue::store_f32, features_, first);
  const bool is_here = target_embedding_ != nullptr;
  const Tokens known{.table = is_here ? target_embedding_
                                      : reinterpret_cast<const __nv_bfloat16*>(inputs.embeddings),
                     .ids = is_here ? inputs.tokens : ascending_};
  float* seen = layer(known, features_, RowsOf::any_text, batch, stream);
  if (shape.logit_rows == 0) return;
  const int texts = shape.sequences;
  choose(seen, inputs.last_rows, texts, choices_, stream);
  batch.num_sequences = batch.num_tokens = texts;
  batch.table = inputs.guess_table;
  for (int g = 1; g < shape.logit_rows; ++g) {
    const Tokens guessed{
        .table = draft_embedding_, .ids = late_, .late = choices_ + (g - 1) * texts};
    batch.context = inputs.guess_context + g * texts;
    float* out = layer(guessed, last_, RowsOf::texts_apart, batch, stream);
    choose(out, nullptr, texts, choices_ + g * texts, stream);
  }
  name_guesses({.choices = choices_,
                .target_ids = target_ids_,
                .late = static_cast<RowChoice*>(config_.seam.guesses),
                .host = reinterpret_cast<std::int32_t*>(host_guesses_.data()),
                .num_guesses = std::int64_t{shape.logit_rows} * texts},
               how);
}

void DraftHead::capture_ahead() {
  constexpr int kGuesses[] = {1, 3, 5, 7};
  constexpr std::int64_t kPositions = 4096;
  if (config_.graphs != Graphs::on) return;
  const int longest =
      table_stride(pages_of(static_cast<int>(std::min(config_.longest, kPositions))));
  for (int stride = table_stride(1); stride <= longest; stride *= 2) {
    for (const int guesses : kGuesses) {
      for (int tokens = 1; tokens <= guesses + 1; ++tokens) {
        const StepShape shape{
            .tokens = tokens, .sequences = 1, .table_stride = stride, .logit_rows = guesses};
        const auto work = [&](cudaStream_t stream) { compute(shape, stream); };
        if (!graphs_.prepare(shape, stream_, work)) return;
      }
    }
  }
  wait();
}

void DraftHead::start(const StepShape& shape) {
  if (config_.graphs == Graphs::on && shape.logit_rows > 0) {
    graphs_.launch(shape, stream_, [&](cudaStream_t stream) { compute(shape, stream); });
  } else {
    compute(shape, stream_);
  }
}

namespace {

StepShape shape_of(std::span<const HeadRow> rows, std::span<const HeadText> texts, int guesses) {
  check(!rows.empty() && std::ssize(rows) <= kMostHeadRows && std::ssize(texts) <= kMostHeadRows &&
            guesses <= kMostGuesses,
        "a draft head's launch is too large");
  // All texts are guessed for as often: one that holds pages for fewer has its others nowhere.
  std::int64_t pages = 1;
  for (const HeadText& text : texts) {
    const std::int32_t last = rows[static_cast<std::size_t>(text.last_row)].position;
    pages = std::max({pages, std::ssize(text.pages), std::int64_t{pages_of(last + guesses)}});
  }
  return {.tokens = padded(static_cast<int>(rows.size())),
          .sequences = padded(static_cast<int>(texts.size())),
          .table_stride = table_stride(pages),
          .logit_rows = guesses};
}

}  // namespace

void DraftHead::see(std::span<const HeadRow> rows, std::span<const HeadText> texts) {
  cuda_check(cudaSetDevice(config_.device));
  const StepShape shape = shape_of(rows, texts, 0);
  upload(rows, texts, shape);
  start(shape);
  wait();
}

std::int64_t DraftHead::ask(std::span<const HeadRow> rows, std::span<const HeadText> texts,
                            int count) {
  cuda_check(cudaSetDevice(config_.device));
  const StepShape shape = shape_of(rows, texts, count);
  upload(rows, texts, shape);
  began_.record(stream_);
  const auto began = std::chrono::steady_clock::now();
  start(shape);
  ended_.record(stream_);
  asking_s_ = std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
  return shape.sequences;
}

std::vector<std::int32_t> DraftHead::guess(std::span<const HeadRow> rows,
                                           std::span<const HeadText> texts, int count) {
  const std::int64_t stride = ask(rows, texts, count);
  wait();
  std::vector<std::int32_t> ids;
  for (std::int64_t g = 0; g < count; ++g) {
    for (std::int64_t t = 0; t < std::ssize(texts); ++t) ids.push_back(answered(g * stride + t));
  }
  return ids;
}

std::int32_t DraftHead::answered(std::int64_t place) const {
  return reinterpret_cast<const std::int32_t*>(host_guesses_.data())[place];
}

std::vector<float> DraftHead::last_logits(int texts) const {
  std::vector<float> logits(static_cast<std::size_t>(texts * head_.config.draft_vocab));
  wait();
  cuda_check(
      cudaMemcpy(logits.data(), logits_, logits.size() * sizeof(float), cudaMemcpyDeviceToHost));
  return logits;
}

}  // namespace gauntlet::engine::cuda::inline draft
