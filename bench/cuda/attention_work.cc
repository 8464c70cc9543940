#include "bench/cuda/attention_work.h"

#include <cuda_fp8.h>
#include <fmt/format.h>

#include <cmath>
#include <cstring>
#include <numeric>
#include <span>
#include <utility>

#include "kernels/ref/ops.h"

namespace gauntlet::bench {
namespace {

using namespace kernels::cuda;

constexpr float kScale = 1.0f / 64;
constexpr float kSink = 0.5f;
constexpr std::int64_t kPatternBytes = std::int64_t{1} << 20;

/// bf16 numbers of about one, or any fp8 numbers but NaN.
std::vector<std::uint8_t> random_elements(KvFormat format, std::uint64_t seed) {
  std::vector<std::uint8_t> bytes(kPatternBytes);
  if (format == KvFormat::bf16) {
    const auto halves = random_bf16(kPatternBytes / 2, seed, 2);
    std::memcpy(bytes.data(), halves.data(), bytes.size());
  } else {
    const Random random(seed);
    for (std::size_t i = 0; i < bytes.size(); ++i) {
      bytes[i] = static_cast<std::uint8_t>(random.bits(i) & 0xF7);
    }
  }
  return bytes;
}

std::vector<std::int32_t> token_sequences(const Shape& shape) {
  std::vector<std::int32_t> all;
  for (int t = 0; t < shape.tokens(); ++t) all.push_back(t / shape.queries);
  return all;
}

std::vector<std::int32_t> first_tokens(const Shape& shape) {
  std::vector<std::int32_t> first;
  for (int s = 0; s <= shape.sequences; ++s) first.push_back(s * shape.queries);
  return first;
}

std::int64_t row_bytes(KvFormat format) {
  return std::int64_t{kHeadDim} * kv_element_bytes(format);
}

}  // namespace

std::string Shape::text() const {
  return fmt::format("{} {}{} x {} at {}", format == KvFormat::bf16 ? "bf16" : "fp8",
                     window > 0 ? "sliding " : "", sequences, queries, context);
}

AttentionWork::AttentionWork(const Shape& shape)
    : shape_(shape),
      pages_((shape.context + shape.queries + kPageTokens - 1) / kPageTokens),
      first_page_(shape.window > 0 ? std::max(0, shape.context + 1 - shape.window) / kPageTokens
                                   : 0),
      rows_(std::int64_t{num_pages()} * kKvHeads * kPageTokens),
      layer_bytes_(rows_ * row_bytes(shape.format)),
      layers_(rotation(2 * layer_bytes_)),
      table_(shuffled_pages()),
      k_pattern_(random_elements(shape.format, 1)),
      v_pattern_(random_elements(shape.format, 2)),
      q_pattern_(random_bf16(kPatternBytes / 2, 3, 2)),
      k_(layer_bytes_ * layers_, k_pattern_),
      v_(layer_bytes_ * layers_, v_pattern_),
      k_scales_(rows_ * 4, std::vector<float>{kScale}),
      v_scales_(rows_ * 4, std::vector<float>{kScale}),
      sinks_(std::vector<float>(kHeads, kSink)),
      q_(std::int64_t{shape.tokens()} * kHeads * kHeadDim * 2, q_pattern_),
      out_(std::int64_t{shape.tokens()} * kHeads * kHeadDim * 2),
      first_(first_tokens(shape)),
      context_(std::vector<std::int32_t>(static_cast<std::size_t>(shape.sequences), shape.context)),
      token_sequence_(token_sequences(shape)),
      device_table_(table_) {}

std::vector<std::int32_t> AttentionWork::shuffled_pages() const {
  std::vector<std::int32_t> order(static_cast<std::size_t>(num_pages()));
  std::iota(order.begin(), order.end(), 0);
  Random random(7);
  for (std::size_t i = order.size(); i > 1; --i) {
    std::swap(order[i - 1], order[random.next_below(i)]);
  }
  std::vector<std::int32_t> table;
  for (std::size_t next = 0; next < order.size();) {
    const bool held = static_cast<int>(table.size()) % pages_ >= first_page_;
    table.push_back(held ? order[next++] : -1);
  }
  return table;
}

Attention AttentionWork::layer(int i) const {
  const std::int64_t offset = layer_bytes_ * (i % layers_);
  return {.q = q_.as<__nv_bfloat16>(),
          .out = out_.as<__nv_bfloat16>(),
          .sinks = sinks_.as<float>(),
          .cache = {.format = shape_.format,
                    .k = k_.as<void>(offset),
                    .v = v_.as<void>(offset),
                    .k_scale = k_scales_.as<float>(),
                    .v_scale = v_scales_.as<float>(),
                    .num_pages = num_pages(),
                    .num_kv_heads = kKvHeads},
          .batch = {.num_sequences = shape_.sequences,
                    .num_tokens = shape_.tokens(),
                    .first_token = first_.as<std::int32_t>(),
                    .context = context_.as<std::int32_t>(),
                    .table = device_table_.as<std::int32_t>(),
                    .token_sequence = token_sequence_.as<std::int32_t>(),
                    .table_stride = pages_,
                    .max_query = shape_.queries,
                    .max_context = shape_.context + shape_.queries},
          .num_heads = kHeads,
          .window = shape_.window};
}

double AttentionWork::visible() const {
  double keys = 0;
  for (int i = 0; i < shape_.queries; ++i) {
    const int seen = shape_.context + i + 1;
    keys += shape_.window > 0 ? std::min(seen, shape_.window) : seen;
  }
  return keys * shape_.sequences;
}

double AttentionWork::bytes() const {
  const int held = shape_.context + shape_.queries;
  const int seen = shape_.window > 0 ? std::min(held, shape_.window + shape_.queries - 1) : held;
  const double row =
      static_cast<double>(row_bytes(shape_.format)) + (shape_.format == KvFormat::fp8 ? 4 : 0);
  return 2.0 * shape_.sequences * seen * kKvHeads * row +
         2.0 * shape_.tokens() * kHeads * kHeadDim * 2;
}

std::vector<double> AttentionWork::cached_row(const std::vector<std::uint8_t>& pattern,
                                              std::int64_t row) const {
  std::vector<double> values;
  for (std::int64_t d = 0; d < kHeadDim; ++d) {
    const int element = kv_element_bytes(shape_.format);
    const std::uint8_t* at = pattern.data() + (row * kHeadDim + d) * element % kPatternBytes;
    if (shape_.format == KvFormat::bf16) {
      std::uint16_t bits;
      std::memcpy(&bits, at, sizeof(bits));
      values.push_back(bf16_float(bits));
    } else {
      __nv_fp8_e4m3 number;
      number.__x = *at;
      values.push_back(double{static_cast<float>(number)} * kScale);
    }
  }
  return values;
}

std::vector<std::uint16_t> AttentionWork::output() const {
  return out_.values<std::uint16_t>(std::int64_t{shape_.tokens()} * kHeads * kHeadDim);
}

void AttentionWork::verify() const {
  const auto got = output();
  for (const std::int64_t token : spots(shape_.tokens())) {
    for (const std::int64_t head : spots(kHeads)) {
      verify(static_cast<int>(token), static_cast<int>(head), got);
    }
  }
}

void AttentionWork::verify(int token, int head, const std::vector<std::uint16_t>& got) const {
  const int sequence = token / shape_.queries, kv_head = head / (kHeads / kKvHeads);
  const int seen = shape_.context + token % shape_.queries + 1;
  std::vector<double> q, keys, values, sizes;
  const std::int64_t first = (std::int64_t{token} * kHeads + head) * kHeadDim;
  for (std::int64_t d = first; d < first + kHeadDim; ++d) {
    q.push_back(bf16_float(q_pattern_[static_cast<std::size_t>(d) % q_pattern_.size()]) / 8.0);
  }
  const int first_held = std::min(first_page_ * kPageTokens, seen);
  for (int position = first_held; position < seen; ++position) {
    const std::int64_t row =
        kv_row(kKvHeads, page_of(sequence, position), kv_head, position % kPageTokens);
    const auto key = cached_row(k_pattern_, row), value = cached_row(v_pattern_, row);
    keys.insert(keys.end(), key.begin(), key.end());
    values.insert(values.end(), value.begin(), value.end());
  }
  for (const double value : values) sizes.push_back(std::abs(value));
  kernels::ref::AttentionInput input{
      .q = q, .keys = keys, .values = values, .sink = kSink, .window = shape_.window};
  const auto wanted = kernels::ref::attention(input);
  input.values = sizes;
  const auto size = kernels::ref::attention(input);
  for (std::size_t d = 0; d < kHeadDim; ++d) {
    expect_near(fmt::format("attention of token {}, head {}, dim {}", token, head, d),
                bf16_float(got[static_cast<std::size_t>(first) + d]), wanted[d],
                size[d] / 64 + 1e-6);
  }
}

}  // namespace gauntlet::bench
