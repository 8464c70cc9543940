#include <fmt/format.h>

#include <cmath>
#include <numeric>

#include "engine/cuda/draft/draft_head_parts.h"
#include "engine/cuda/uploader.h"
#include "kernels/cuda/device_facts.h"
#include "kernels/cuda/rows/rows.h"
#include "model/tensor.h"

namespace gauntlet::engine::cuda::inline draft {
namespace {

using namespace kernels::cuda;
using namespace head;
using model::EagleHeadConfig;
using model::Matrix;

/// Inputs of eight tokens that fit a block's shared memory beside its rings.
constexpr std::int64_t kWidestInput = 8640;
constexpr float kNoSink = -1e4f;  // a logit that takes no part

/// Fewer rows are split finer: the most partials lie somewhere between.
std::int64_t partial_bytes(const EagleHeadConfig& config, int max_context, int num_sms) {
  std::size_t most = 0;
  for (int rows = 1; rows <= kMostHeadRows; ++rows) {
    const DecodeShape shape = decode_shape(config, rows, max_context, num_sms);
    most = std::max(most, decode_partial_bytes(shape, choose_pages_per_split(shape)));
  }
  return static_cast<std::int64_t>(most);
}

}  // namespace

/// Brings the head's matrices to where the layout has them.
class DraftHead::Loader {
 public:
  explicit Loader(std::shared_ptr<model::WeightStorage> storage)
      : holder_{.storage = std::move(storage)}, uploader_(holder_, 1, {}) {}

  const float* numbers(Layout& layout, const std::vector<float>& values) {
    auto* at = layout.take<float>(std::ssize(values));
    if (is_filling) uploader_.numbers(values, at);
    return at;
  }
  /// The sources one above the other, their columns in parts that the products take.
  void matrix(Layout& layout, const std::vector<const Matrix*>& sources, Weights& into) {
    const std::int64_t cols = sources[0]->cols;
    const std::int64_t num_parts = (cols + kWidestInput - 1) / kWidestInput;
    const std::int64_t each = stride((cols + num_parts - 1) / num_parts);
    into.parts.clear();
    for (std::int64_t first = 0; first < cols; first += each) {
      Part& part = into.parts.emplace_back();
      part.first_col = first;
      part.weights = {.format = WeightFormat::bf16, .cols = std::min(each, cols - first)};
      for (const Matrix* source : sources) part.weights.rows += source->rows;
      auto* at = layout.take<std::uint8_t>(part.weights.bytes());
      part.weights.data = at;
      for (const Matrix* source : sources) {
        FragmentMatrix own = part.weights;
        own.rows = source->rows;
        own.data = at;
        const Matrix view = columns_of(*source, first, part.weights.cols);
        if (is_filling) uploader_.fragments({&view}, RowOrder::plain, own, at);
        at += own.bytes();
      }
    }
  }
  void finish() { uploader_.finish(); }
  bool is_filling = false;

 private:
  const model::ModelWeights holder_;
  Uploader uploader_;
};

Expected<void> DraftHead::check_shape(const EagleHeadConfig& config) {
  const std::int64_t group = config.num_heads / config.num_kv_heads;
  if (config.head_dim == kHeadDim && (group == 1 || group == 2 || group == 4 || group == 8) &&
      config.hidden % kBlockCols == 0 && config.hidden <= kWidestNorm &&
      config.intermediate % kBlockRows == 0 && config.draft_vocab % kBlockRows == 0 &&
      config.draft_vocab <= kMostVocab) {
    return {};
  }
  return Error{
      fmt::format("a draft head on a GPU has a head_dim of 64, 1, 2, 4 or 8 query heads per KV "
                  "head, and widths "
                  "and a vocabulary that are multiples of 64, not {}, {}, {}, {} and {}",
                  config.head_dim, group, config.hidden, config.intermediate, config.draft_vocab)};
}

DraftHead::DraftHead(const model::EagleHead& head, const Matrix& embedding, const Config& config)
    : head_(head),
      embedding_(head.embedding.value_or(embedding)),
      config_(config),
      num_sms_((cuda_check(cudaSetDevice(config.device)), device_facts().num_sms)),
      own_stream_(config.seam.stream == nullptr ? std::make_unique<CudaStream>() : nullptr),
      stream_(own_stream_ ? *own_stream_ : static_cast<cudaStream_t>(config.seam.stream)) {
  const bool has_seam = config.seam.stream != nullptr;
  check(!has_seam || config.seam.num_guesses >= kMostHeadRows * kMostGuesses,
        "a target has too few places for the guesses of a head");
  if (has_seam && !head.embedding) {
    target_embedding_ = static_cast<const __nv_bfloat16*>(config.seam.embedding);
  }
  const EagleHeadConfig& shape = head_.config;
  const std::int64_t rows = kMostHeadRows, hidden = shape.hidden;
  const StepShape largest{
      .tokens = kMostHeadRows,
      .sequences = kMostHeadRows,
      .table_stride = table_stride(kernels::cuda::pages_of(static_cast<int>(config.longest))),
      .logit_rows = kMostGuesses};
  const std::int64_t input_bytes = inputs_at(nullptr, largest).bytes;
  const std::int64_t positions = config.longest + kMostGuesses;
  Loader loader(head.storage);
  std::int64_t draft_rows_at = 0;
  const auto lay_out = [&](Layout& at) {
    loader.matrix(at, {&head_.fc}, fc_);
    loader.matrix(at, {&head_.q, &head_.k, &head_.v}, qkv_);
    loader.matrix(at, {&head_.o}, o_);
    loader.matrix(at, {&head_.gate, &head_.up}, gate_up_);
    loader.matrix(at, {&head_.down}, down_);
    loader.matrix(at, {&head_.lm_head}, lm_head_);
    input_norm_ = loader.numbers(at, head_.input_norm);
    hidden_norm_ = loader.numbers(at, head_.hidden_norm);
    mlp_norm_ = loader.numbers(at, head_.mlp_norm);
    final_norm_ = loader.numbers(at, head_.final_norm);
    fc_norm_ = loader.numbers(at, head_.fc_norm);
    sinks_ =
        loader.numbers(at, std::vector<float>(static_cast<std::size_t>(shape.num_heads), kNoSink));
    rope_ = at.take<float2>(positions * kHeadDim / 2);
    draft_rows_at = at.bytes();
    draft_embedding_ = at.take<__nv_bfloat16>(shape.draft_vocab * hidden);
    target_ids_ = at.take<std::int32_t>(shape.draft_vocab);
    if (has_seam) kept_ = at.take<__nv_bfloat16>(kKeptRows * stride(shape.features()));
    ascending_ = at.take<std::int32_t>(rows + 1);
    late_ = at.take<std::int32_t>(rows);
    const std::int64_t cache_numbers =
        (config.num_pages + 1) * shape.num_kv_heads * kPageTokens * kHeadDim;
    cache_ = {.format = KvFormat::bf16,
              .k = at.take<__nv_bfloat16>(cache_numbers),
              .v = at.take<__nv_bfloat16>(cache_numbers),
              .num_pages = static_cast<int>(config.num_pages + 1),
              .num_kv_heads = static_cast<int>(shape.num_kv_heads)};
    inputs_ = at.take<std::uint8_t>(input_bytes);
    joined_ = at.take<__nv_bfloat16>(rows * stride(2 * hidden));
    normed_ = at.take<__nv_bfloat16>(rows * stride(hidden));
    attended_ = at.take<__nv_bfloat16>(rows * stride(width(shape)));
    activated_ = at.take<__nv_bfloat16>(rows * stride(shape.intermediate));
    final_ = at.take<__nv_bfloat16>(rows * stride(hidden));
    q_ = at.take<__nv_bfloat16>(rows * width(shape));
    features_ = at.take<float>(rows * hidden);
    plain_ = at.take<float>(rows * hidden);
    last_ = at.take<float>(rows * hidden);
    qkv_out_ = at.take<float>(rows * (width(shape) + 2 * kv_width(shape)));
    gate_up_out_ = at.take<float>(rows * 2 * shape.intermediate);
    logits_ = at.take<float>(rows * shape.draft_vocab);
    choices_ = at.take<RowChoice>(rows * kMostGuesses);
    partials_ = at.take<std::uint8_t>(partial_bytes(shape, largest.max_context(), num_sms_));
    arrived_ = at.take<std::uint32_t>(rows * shape.num_kv_heads);
  };
  Layout measured(nullptr);
  lay_out(measured);
  memory_ = DeviceMemory(measured.bytes());
  cuda_check(cudaMemset(memory_.data(), 0, static_cast<std::size_t>(memory_.bytes())));
  cuda_check(cudaDeviceSynchronize());  // the loader's stream does not wait for the memset's
  loader.is_filling = true;
  Layout filled(memory_.data());
  lay_out(filled);
  loader.finish();

  const auto copy = [&](const void* to, const void* from, std::size_t bytes) {
    cuda_check(cudaMemcpy(const_cast<void*>(to), from, bytes, cudaMemcpyHostToDevice));
  };
  std::vector<float2> angles(static_cast<std::size_t>(positions * kHeadDim / 2));
  for (std::size_t i = 0; i < angles.size(); ++i) {
    const double exponent = static_cast<double>(2 * (i % (kHeadDim / 2))) / kHeadDim;
    const std::size_t position = i / (kHeadDim / 2);
    const double angle = static_cast<double>(position) * std::pow(shape.rope_theta, -exponent);
    angles[i] = {static_cast<float>(std::cos(angle)), static_cast<float>(std::sin(angle))};
  }
  copy(rope_, angles.data(), angles.size() * sizeof(float2));
  std::vector<std::uint16_t> drafted(static_cast<std::size_t>(shape.draft_vocab * hidden));
  embeddings_of(head_.target_ids, drafted.data());
  copy(draft_embedding_, drafted.data(), drafted.size() * sizeof(std::uint16_t));
  std::vector<std::int32_t> ascending(kMostHeadRows + 1), late(kMostHeadRows);
  std::iota(ascending.begin(), ascending.end(), 0);
  for (int i = 0; i < kMostHeadRows; ++i) late[static_cast<std::size_t>(i)] = -1 - i;
  copy(target_ids_, head_.target_ids.data(), head_.target_ids.size() * sizeof(std::int32_t));
  copy(ascending_, ascending.data(), ascending.size() * sizeof(std::int32_t));
  copy(late_, late.data(), late.size() * sizeof(std::int32_t));
  host_inputs_ = PinnedMemory(input_bytes);
  host_guesses_ =
      PinnedMemory(kMostHeadRows * kMostGuesses * static_cast<std::int64_t>(sizeof(std::int32_t)));

  const auto reads = [&](Weights& weights, const __nv_bfloat16* x, std::int64_t x_stride) {
    weights.x = x;
    weights.x_stride = x_stride;
    if (!prefill_product_available()) return;
    for (Part& part : weights.parts) {
      make_prefill_input(
          {.x = x + part.first_col, .rows = rows, .cols = part.weights.cols, .stride = x_stride},
          part.tiles);
    }
  };
  // Residuals stand first among a launch's inputs, whatever its shape.
  reads(fc_, reinterpret_cast<const __nv_bfloat16*>(inputs_), stride(shape.features()));
  reads(qkv_, joined_, stride(2 * hidden));
  reads(o_, attended_, stride(width(shape)));
  reads(gate_up_, normed_, stride(hidden));
  reads(down_, activated_, stride(shape.intermediate));
  reads(lm_head_, final_, stride(hidden));
  cuda_check(cudaDeviceSynchronize());
  capture_ahead();
}

DraftHead::~DraftHead() { cudaStreamSynchronize(stream_); }

std::int64_t DraftHead::bytes_for(const EagleHeadConfig& head, const Config& config) {
  const std::int64_t hidden = head.hidden, inner = head.intermediate;
  const std::int64_t weights =
      2 * (head.features() * hidden + 2 * hidden * (width(head) + 2 * kv_width(head)) +
           width(head) * hidden + 3 * hidden * inner + 2 * head.draft_vocab * hidden);
  const std::int64_t cache = 4 * (config.num_pages + 1) * kPageTokens * kv_width(head);
  const int pages = table_stride(kernels::cuda::pages_of(static_cast<int>(config.longest)));
  const std::int64_t rows = kMostHeadRows * (2 * head.features() + 32 * hidden + 8 * width(head) +
                                             10 * inner + 4 * head.draft_vocab + 8 * pages);
  const std::int64_t kept =
      config.seam.stream != nullptr ? 2 * kKeptRows * stride(head.features()) : 0;
  return weights + cache + rows + kept +
         partial_bytes(head, pages * kPageTokens, device_facts().num_sms);
}

}  // namespace gauntlet::engine::cuda::inline draft
