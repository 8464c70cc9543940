// For tests: sequences with random keys and values in shuffled pages on the device, everything
// unused poisoned with NaN, and what attention over them must give, in float64.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "core/random.h"
#include "kernels/cuda/attention/kv_cache.h"
#include "kernels/cuda/device_test.h"
#include "kernels/ref/ops.h"

namespace gauntlet::kernels::cuda::inline attention {

inline double from_e4m3(std::uint8_t byte) {
  const int exponent = byte >> 3 & 15, mantissa = byte & 7;
  if (exponent == 15 && mantissa == 7) return NAN;
  const double size =
      exponent == 0 ? std::ldexp(mantissa, -9) : std::ldexp(8 + mantissa, exponent - 10);
  return byte & 0x80 ? -size : size;
}
/// The nearest; of two as near the lower.
inline std::uint8_t to_e4m3(double x) {
  static const std::vector<double> sizes = [] {
    std::vector<double> all;
    for (std::uint8_t byte = 0; byte < 0x7F; ++byte) all.push_back(from_e4m3(byte));
    return all;
  }();
  const double size = std::abs(x);
  auto at = std::ranges::lower_bound(sizes, size);
  if (at == sizes.end() || (at != sizes.begin() && size - at[-1] <= *at - size)) --at;
  const auto byte = static_cast<unsigned>(at - sizes.begin());
  return static_cast<std::uint8_t>(x < 0 ? byte | 0x80 : byte);
}

struct Sequence {
  int context = 0;
  int queries = 1;
  std::uint64_t content = 1;  // the same number, the same keys, values and queries
};

struct Scenario {
  int num_heads = 16;
  int num_kv_heads = 2;
  KvFormat format = KvFormat::bf16;
  int window = 0;
  float sink = 0.5f;  // head h has this plus h / 4
  std::vector<Sequence> sequences = {};
  int max_context = 0;  // 0: what the sequences need
};

inline constexpr std::uint16_t kPoison16 = 0x7FFF;
inline constexpr std::uint8_t kPoison8 = 0x7F;

/// Rows of 64, as the host sees them and as the device stores them.
struct HostRows {
  std::vector<std::uint16_t> bf16;
  std::vector<std::uint8_t> fp8;
  std::vector<float> scale;

  HostRows(KvFormat format, std::size_t rows) {
    if (format == KvFormat::bf16) {
      bf16.assign(rows * kHeadDim, kPoison16);
    } else {
      fp8.assign(rows * kHeadDim, kPoison8);
      scale.assign(rows, NAN);
    }
  }
  /// Stores a row and gives what a reader will see.
  std::vector<double> store(std::size_t row, const std::vector<float>& values) {
    std::vector<double> seen;
    float amax = 0;
    for (const float value : values) amax = std::max(amax, std::abs(value));
    if (!scale.empty()) scale[row] = amax / 448;
    for (std::size_t d = 0; d < kHeadDim; ++d) {
      if (scale.empty()) {
        bf16[row * kHeadDim + d] = bf16_bits(values[d]);
        seen.push_back(bf16_float(bf16[row * kHeadDim + d]));
      } else {
        const std::uint8_t byte = amax > 0 ? to_e4m3(values[d] / scale[row]) : 0;
        fp8[row * kHeadDim + d] = byte;
        seen.push_back(from_e4m3(byte) * scale[row]);
      }
    }
    return seen;
  }
};

/// Rows of 64 on the device.
struct DeviceRows {
  explicit DeviceRows(const HostRows& rows) : bf16(rows.bf16), fp8(rows.fp8), scale(rows.scale) {}
  void* data(KvFormat format) const {
    return format == KvFormat::bf16 ? bf16.as<void>() : fp8.as<void>();
  }
  OnDevice<std::uint16_t> bf16;
  OnDevice<std::uint8_t> fp8;
  OnDevice<float> scale;
};

/// Which page each run of 64 positions lies in; pages that no query of a sliding layer sees have
/// none. Rounded up so that spare, poisoned pages lie between.
struct PageTable {
  explicit PageTable(const Scenario& scenario) {
    for (const Sequence& s : scenario.sequences) {
      stride = std::max(stride, (s.context + s.queries + kPageTokens - 1) / kPageTokens);
    }
    const int sequences = static_cast<int>(scenario.sequences.size());
    num_pages = sequences * stride + 3;
    std::vector<std::int32_t> order;
    for (int i = 0; i < num_pages; ++i) order.push_back(i);
    Random random(17);
    for (std::size_t i = order.size(); i > 1; --i) {
      std::swap(order[i - 1], order[random.next_below(i)]);
    }
    for (int s = 0; s < sequences; ++s) {
      const Sequence& sequence = scenario.sequences[static_cast<std::size_t>(s)];
      const int first_seen = scenario.window > 0 ? sequence.context + 1 - scenario.window : 0;
      for (int i = 0; i < stride; ++i) {
        const bool needed = (i + 1) * kPageTokens > first_seen &&
                            i * kPageTokens < sequence.context + sequence.queries;
        entries.push_back(needed ? order[static_cast<std::size_t>(s * stride + i)] : -1);
      }
    }
  }
  int stride = 0;
  int num_pages = 0;
  std::vector<std::int32_t> entries;
};

inline std::vector<float> random_row(std::uint64_t seed, std::uint64_t row, float size) {
  const Random random(seed);
  std::vector<float> values;
  for (std::uint64_t d = 0; d < kHeadDim; ++d) {
    values.push_back(random.uniform(-size, size, row * kHeadDim + d));
  }
  return values;
}

/// The scenario on the device, with its reference.
class Stage {
 public:
  explicit Stage(const Scenario& scenario)
      : scenario_(scenario), pages_(scenario), batch_(lay_out()), content_(fill()) {}

  Attention attention() {
    return {.q = content_.q.as<__nv_bfloat16>(),
            .out = content_.out.as<__nv_bfloat16>(),
            .sinks = content_.sinks.get(),
            .cache = cache(),
            .batch = batch(),
            .num_heads = scenario_.num_heads,
            .window = scenario_.window};
  }
  KvCache cache() {
    return {.format = scenario_.format,
            .k = content_.k.data(scenario_.format),
            .v = content_.v.data(scenario_.format),
            .k_scale = content_.k.scale.get(),
            .v_scale = content_.v.scale.get(),
            .num_pages = pages_.num_pages,
            .num_kv_heads = scenario_.num_kv_heads};
  }
  AttentionBatch batch() {
    return {.num_sequences = static_cast<int>(scenario_.sequences.size()),
            .num_tokens = batch_.num_tokens,
            .first_token = batch_.first_token.get(),
            .context = batch_.context.get(),
            .table = batch_.table.get(),
            .token_sequence = batch_.token_sequence.get(),
            .table_stride = pages_.stride,
            .max_query = batch_.max_query,
            .max_context = std::max(batch_.max_context, scenario_.max_context)};
  }
  const PageTable& pages() const { return pages_; }
  DeviceRows& k() { return content_.k; }
  DeviceRows& v() { return content_.v; }

  /// What the kernel wrote, [tokens, heads, 64]; then poisons it again.
  std::vector<std::uint16_t> take_output() {
    auto output = content_.out.values();
    content_.out.write(std::vector<std::uint16_t>(output.size(), kPoison16));
    return output;
  }
  const std::vector<double>& expected() const { return content_.expected; }
  /// Weights and results are rounded to bf16 once each: 2^-8 of the weighted sizes of the values.
  const std::vector<double>& tolerance() const { return content_.tolerance; }

 private:
  struct BatchArrays {
    int num_tokens, max_query, max_context;
    OnDevice<std::int32_t> first_token, context, table, token_sequence;
  };
  struct Content {
    OnDevice<std::uint16_t> q, out;
    OnDevice<float> sinks;
    DeviceRows k, v;
    std::vector<double> expected, tolerance;
  };

  BatchArrays lay_out() const {
    std::vector<std::int32_t> first{0}, context, token_sequence;
    int max_query = 0, max_context = 0;
    for (const Sequence& s : scenario_.sequences) {
      token_sequence.insert(token_sequence.end(), static_cast<std::size_t>(s.queries),
                            static_cast<std::int32_t>(context.size()));
      first.push_back(first.back() + s.queries);
      context.push_back(s.context);
      max_query = std::max(max_query, s.queries);
      max_context = std::max(max_context, s.context + s.queries);
    }
    return {first.back(),
            max_query,
            max_context,
            OnDevice(first),
            OnDevice(context),
            OnDevice(pages_.entries),
            OnDevice(token_sequence)};
  }

  Content fill() const {
    const auto kv_heads = static_cast<std::size_t>(scenario_.num_kv_heads);
    const auto heads = static_cast<std::size_t>(scenario_.num_heads);
    const std::size_t rows = static_cast<std::size_t>(pages_.num_pages) * kv_heads * kPageTokens;
    HostRows k(scenario_.format, rows), v(scenario_.format, rows);
    std::vector<float> sinks;
    for (std::size_t h = 0; h < heads; ++h) {
      sinks.push_back(scenario_.sink + static_cast<float>(h) / 4);
    }
    std::vector<std::uint16_t> q;
    std::vector<double> expected, tolerance;
    for (std::size_t s = 0; s < scenario_.sequences.size(); ++s) {
      const Sequence& sequence = scenario_.sequences[s];
      std::vector<std::vector<double>> keys(kv_heads), values(kv_heads), sizes(kv_heads);
      store_sequence(s, k, v, keys, values);
      for (std::size_t h = 0; h < kv_heads; ++h) {
        for (const double value : values[h]) sizes[h].push_back(std::abs(value));
      }
      for (int i = 0; i < sequence.queries; ++i) {
        for (std::size_t h = 0; h < heads; ++h) {
          const std::size_t kv = h / (heads / kv_heads);
          const auto number = static_cast<std::uint64_t>(sequence.context + i) * 64 + h;
          std::vector<double> scaled;
          for (const float value : random_row(sequence.content + 2000, number, 4)) {
            q.push_back(bf16_bits(value));
            scaled.push_back(bf16_float(q.back()) / 8.0);
          }
          const auto seen = static_cast<std::size_t>(sequence.context + i + 1) * kHeadDim;
          ref::AttentionInput input{.q = scaled,
                                    .keys = std::span(keys[kv]).first(seen),
                                    .values = std::span(values[kv]).first(seen),
                                    .sink = sinks[h],
                                    .window = scenario_.window};
          for (const double value : ref::attention(input)) expected.push_back(value);
          input.values = std::span(sizes[kv]).first(seen);
          for (const double value : ref::attention(input)) {
            tolerance.push_back(value * 2 * 0x1p-8 + 1e-6);
          }
        }
      }
    }
    const std::vector<std::uint16_t> poison(q.size(), kPoison16);
    return {OnDevice(q),   OnDevice(poison), OnDevice(sinks), DeviceRows(k),
            DeviceRows(v), expected,         tolerance};
  }

  /// Positions without a page are seen by no query; their place in keys and values is zero.
  void store_sequence(std::size_t s, HostRows& k, HostRows& v,
                      std::vector<std::vector<double>>& keys,
                      std::vector<std::vector<double>>& values) const {
    const Sequence& sequence = scenario_.sequences[s];
    for (int position = 0; position < sequence.context + sequence.queries; ++position) {
      const int page = pages_.entries[s * static_cast<std::size_t>(pages_.stride) +
                                      static_cast<std::size_t>(position / kPageTokens)];
      for (int h = 0; h < scenario_.num_kv_heads; ++h) {
        const auto head = static_cast<std::size_t>(h);
        const auto number = static_cast<std::uint64_t>(position) * 8 + head;
        std::vector<double> key(kHeadDim), value(kHeadDim);
        if (page >= 0) {
          const auto row = static_cast<std::size_t>(
              kv_row(scenario_.num_kv_heads, page, h, position % kPageTokens));
          key = k.store(row, random_row(sequence.content, number, 2));
          value = v.store(row, random_row(sequence.content + 1000, number, 2));
        }
        keys[head].insert(keys[head].end(), key.begin(), key.end());
        values[head].insert(values[head].end(), value.begin(), value.end());
      }
    }
  }

  Scenario scenario_;
  PageTable pages_;
  BatchArrays batch_;
  Content content_;
};

}  // namespace gauntlet::kernels::cuda::inline attention
