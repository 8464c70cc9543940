#include <algorithm>
#include <cmath>
#include <numeric>

#include "core/check.h"
#include "engine/speculation/eagle.h"

namespace gauntlet::engine::inline speculation {
namespace {

constexpr std::int64_t kPage = kernels::cpu::kPageTokens;
constexpr float kNoSink = -1e4f;  // a logit that takes no part

/// Products by tiles read rows beyond the last, which are not there.
kernels::cpu::SimdLevel without_tiles(kernels::cpu::SimdLevel simd) {
  using kernels::cpu::SimdLevel;
  return simd == SimdLevel::amx ? SimdLevel::avx512_bf16 : simd;
}

}  // namespace

EagleLayer::Packed EagleLayer::pack(const model::Matrix& matrix) {
  using kernels::cpu::PackedFormat;
  const bool is_bf16 = matrix.type == model::WeightType::bf16;
  Packed packed{.matrix = {.format = is_bf16 ? PackedFormat::bf16 : PackedFormat::f32,
                           .rows = matrix.rows,
                           .cols = matrix.cols}};
  packed.memory.resize(static_cast<std::size_t>(packed.matrix.bytes()));
  packed.matrix.data = packed.memory.data();
  std::vector<float> floats(static_cast<std::size_t>(matrix.cols));
  std::vector<std::uint16_t> halves(floats.size());
  for (std::int64_t row = 0; row < matrix.rows; ++row) {
    const auto place = kernels::cpu::row_place(packed.matrix, row, packed.memory.data(), nullptr);
    if (is_bf16) {
      matrix.read_row_bf16(row, halves.data());
      kernels::cpu::pack_row_bf16(halves.data(), matrix.cols, place);
    } else {
      matrix.read_row(row, floats.data());
      kernels::cpu::pack_row_f32(floats.data(), matrix.cols, place);
    }
  }
  return packed;
}

EagleLayer::EagleLayer(const model::EagleHead& head, const model::Matrix& embedding,
                       std::shared_ptr<model::WeightStorage> storage, kernels::cpu::SimdLevel simd)
    : head_(head),
      config_(head.config),
      embedding_(head.embedding.value_or(embedding)),
      storage_(std::move(storage)),
      kernels_(kernels::cpu::kernels(without_tiles(simd))),
      fc_(pack(head.fc)),
      q_(pack(head.q)),
      k_(pack(head.k)),
      v_(pack(head.v)),
      o_(pack(head.o)),
      gate_(pack(head.gate)),
      up_(pack(head.up)),
      down_(pack(head.down)),
      lm_head_(pack(head.lm_head)) {}

void EagleLayer::product(const Packed& weights, const float* x, std::int64_t count, float* out,
                         kernels::cpu::Output output, std::int64_t out_stride) const {
  kernels_.begin_work();
  kernels_.product({.weights = weights.matrix,
                    .precision = kernels::cpu::Precision::f32,
                    .group_end = weights.matrix.num_groups(),
                    .num_tokens = count,
                    .x = {.f32 = x, .stride = weights.matrix.cols},
                    .output = output,
                    .out = out,
                    .out_stride = out_stride > 0 ? out_stride : weights.matrix.rows});
  kernels_.end_work();
}

void EagleLayer::norm(const float* x, const model::Vector& weight, float* out) const {
  kernels_.rms_norm(x, weight.data(), static_cast<float>(config_.rms_epsilon), std::ssize(weight),
                    out);
}

void EagleLayer::fuse(std::span<const float> residuals, std::int64_t first, float* features) const {
  const std::int64_t hidden = config_.hidden;
  const std::int64_t width = config_.features();
  const std::int64_t tokens = std::ssize(residuals) / width;
  const std::int64_t count = tokens - first;
  std::vector<float> joined(static_cast<std::size_t>(count * width));
  for (std::int64_t b = 0; b < std::ssize(config_.boundaries); ++b) {
    const float* from = residuals.data() + (b * tokens + first) * hidden;
    for (std::int64_t t = 0; t < count; ++t) {
      std::copy_n(from + t * hidden, hidden, joined.data() + t * width + b * hidden);
    }
  }
  for (std::int64_t t = 0; config_.norm_before_fc && t < count; ++t) {
    norm(joined.data() + t * width, head_.fc_norm, joined.data() + t * width);
  }
  product(fc_, joined.data(), count, features);
}

void EagleLayer::rotate(float* heads, std::int64_t num_heads, std::int64_t position) const {
  const std::int64_t half = config_.head_dim / 2;
  for (std::int64_t i = 0; i < half; ++i) {
    const double exponent = static_cast<double>(2 * i) / static_cast<double>(config_.head_dim);
    const double angle = static_cast<double>(position) * std::pow(config_.rope_theta, -exponent);
    const auto c = static_cast<float>(std::cos(angle));
    const auto s = static_cast<float>(std::sin(angle));
    for (std::int64_t h = 0; h < num_heads; ++h) {
      float* head = heads + h * config_.head_dim;
      const float a = head[i], b = head[i + half];
      head[i] = a * c - b * s;
      head[i + half] = b * c + a * s;
    }
  }
}

void EagleLayer::attend(Cache& cache, const kernels::cpu::TreePath& path, float* q, float* k,
                        const float* v, float* out) const {
  const std::int64_t dim = config_.head_dim;
  const std::int64_t page_numbers = config_.num_kv_heads * dim * kPage;
  const std::int64_t at = cache.length++;
  const auto needed = static_cast<std::size_t>((at / kPage + 1) * page_numbers);
  if (cache.keys.size() < needed) {
    cache.keys.resize(needed);
    cache.values.resize(needed);
  }
  const std::int64_t position = path.slots.empty() ? at : path.first + std::ssize(path.slots) - 1;
  rotate(q, config_.num_heads, cache.first + position);
  rotate(k, config_.num_kv_heads, cache.first + position);
  std::vector<std::int32_t> pages(static_cast<std::size_t>(at / kPage + 1));
  std::iota(pages.begin(), pages.end(), 0);
  const std::int64_t group = config_.num_heads / config_.num_kv_heads;
  const float scale = 1 / std::sqrt(static_cast<float>(dim));
  for (std::int64_t i = 0; i < config_.num_heads * dim; ++i) q[i] *= scale;
  const std::vector<float> sinks(static_cast<std::size_t>(group), kNoSink);
  const std::vector<std::int64_t> positions(static_cast<std::size_t>(group), position);
  std::vector<std::uint8_t> path_keys, path_values;
  for (std::int64_t h = 0; h < config_.num_kv_heads; ++h) {
    float* keys = cache.keys.data() + at / kPage * page_numbers + h * dim * kPage;
    float* values = cache.values.data() + at / kPage * page_numbers + h * dim * kPage;
    for (std::int64_t d = 0; d < dim; ++d) {
      keys[d * kPage + at % kPage] = k[h * dim + d];
      values[at % kPage * dim + d] = v[h * dim + d];
    }
    kernels::cpu::AttentionTask task{
        .q = q + h * group * dim,
        .q_stride = dim,
        .out = out + h * group * dim,
        .out_stride = dim,
        .num_rows = static_cast<int>(group),
        .positions = positions.data(),
        .sinks = sinks.data(),
        .head_dim = static_cast<int>(dim),
        .pages = pages.data(),
        .k_base = reinterpret_cast<const std::uint8_t*>(cache.keys.data() + h * dim * kPage),
        .v_base = reinterpret_cast<const std::uint8_t*>(cache.values.data() + h * dim * kPage),
        .page_stride_bytes = page_numbers * static_cast<std::int64_t>(sizeof(float))};
    if (!path.slots.empty()) {
      const std::int64_t bytes =
          kernels::cpu::path_bytes(path, position, {task.head_dim, task.type});
      path_keys.resize(static_cast<std::size_t>(bytes));
      path_values.resize(path_keys.size());
      kernels::cpu::gather_path(path, position, {path_keys.data(), path_values.data()}, task);
    }
    kernels_.flash_attention(task);
  }
}

void EagleLayer::run(Cache& cache, std::span<const std::int32_t> tokens, const float* features,
                     float* out) const {
  run_branches(cache, cache.length, tokens, {}, features, out);
}

void EagleLayer::run_branches(Cache& cache, std::int64_t known,
                              std::span<const std::int32_t> tokens,
                              std::span<const std::vector<std::int32_t>> paths,
                              const float* features, float* out) const {
  const std::int64_t count = std::ssize(tokens);
  const std::int64_t hidden = config_.hidden;
  const std::int64_t width = config_.num_heads * config_.head_dim;
  const std::int64_t kv_width = config_.num_kv_heads * config_.head_dim;
  const auto rows = [&](std::int64_t columns) {
    return std::vector<float>(static_cast<std::size_t>(count * columns));
  };
  std::vector<float> joined = rows(2 * hidden);
  std::vector<float> embedded(static_cast<std::size_t>(hidden));
  std::copy_n(features, count * hidden, out);
  for (std::int64_t t = 0; t < count; ++t) {
    float* row = joined.data() + t * 2 * hidden;
    embedding_.read_row(tokens[t], embedded.data());
    norm(embedded.data(), head_.input_norm, row);
    norm(features + t * hidden, head_.hidden_norm, row + hidden);
    if (config_.norm_before_residual) std::copy_n(row + hidden, hidden, out + t * hidden);
  }
  std::vector<float> q = rows(width), k = rows(kv_width), v = rows(kv_width), seen = rows(width);
  product(q_, joined.data(), count, q.data());
  product(k_, joined.data(), count, k.data());
  product(v_, joined.data(), count, v.data());
  for (std::int64_t t = 0; t < count; ++t) {
    std::vector<std::int32_t> path;
    if (!paths.empty()) {
      path = paths[t];
      path.push_back(static_cast<std::int32_t>(cache.length));
    }
    attend(cache, {.first = known, .slots = path}, q.data() + t * width, k.data() + t * kv_width,
           v.data() + t * kv_width, seen.data() + t * width);
  }
  product(o_, seen.data(), count, out, kernels::cpu::Output::accumulate);
  std::vector<float> normed = rows(hidden);
  for (std::int64_t t = 0; t < count; ++t) {
    norm(out + t * hidden, head_.mlp_norm, normed.data() + t * hidden);
  }
  std::vector<float> gate = rows(config_.intermediate), up = rows(config_.intermediate);
  product(gate_, normed.data(), count, gate.data());
  product(up_, normed.data(), count, up.data());
  for (std::size_t i = 0; i < gate.size(); ++i)
    gate[i] = gate[i] / (1 + std::exp(-gate[i])) * up[i];
  product(down_, gate.data(), count, out, kernels::cpu::Output::accumulate);
}

std::vector<float> EagleLayer::logits(const float* feature) const {
  return std::move(logits(feature, 1)[0]);
}

std::vector<std::vector<float>> EagleLayer::logits(const float* features,
                                                   std::int64_t count) const {
  const std::int64_t hidden = config_.hidden;
  const std::int64_t stride = lm_head_.matrix.num_groups() * kernels::cpu::kGroupRows;
  std::vector<float> normed(static_cast<std::size_t>(count * hidden));
  for (std::int64_t t = 0; t < count; ++t) {
    norm(features + t * hidden, head_.final_norm, normed.data() + t * hidden);
  }
  std::vector<float> out(static_cast<std::size_t>(count * stride));
  product(lm_head_, normed.data(), count, out.data(), kernels::cpu::Output::store, stride);
  std::vector<std::vector<float>> logits;
  for (std::int64_t t = 0; t < count; ++t) {
    const auto row = out.begin() + t * stride;
    logits.emplace_back(row, row + config_.draft_vocab);
  }
  return logits;
}

}  // namespace gauntlet::engine::inline speculation
