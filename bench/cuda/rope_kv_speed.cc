// How fast q and k are rotated and k and v put into their pages: in one launch, and in two.
#include <cuda_bf16.h>
#include <cuda_fp8.h>
#include <fmt/format.h>
#include <vector_types.h>

#include <cmath>
#include <cstring>
#include <vector>

#include "bench/cuda/attention_work.h"
#include "kernels/cuda/attention/rope_kv.h"
#include "kernels/cuda/rows/unfused.h"

namespace {

using namespace gauntlet;
using namespace gauntlet::bench;
using namespace gauntlet::kernels::cuda;

constexpr int kWidth = (kHeads + 2 * kKvHeads) * kHeadDim;
constexpr int kHalf = kHeadDim / 2;
constexpr int kContext = 1000;

/// {cos, sin} of an angle for each position and pair.
std::vector<float> rope_table(int positions) {
  std::vector<float> table;
  for (int p = 0; p < positions; ++p) {
    for (int pair = 0; pair < kHalf; ++pair) {
      const double angle = p * std::pow(150000.0, -static_cast<double>(pair) / kHalf);
      table.push_back(static_cast<float>(std::cos(angle)));
      table.push_back(static_cast<float>(std::sin(angle)));
    }
  }
  return table;
}

class RopeCase {
 public:
  explicit RopeCase(const bench::Shape& shape)
      : work_(shape),
        copies_(rotation(std::int64_t{shape.tokens()} * kWidth * 4)),
        qkv_(random_floats(std::int64_t{shape.tokens()} * kWidth, 5, 2)),
        table_(rope_table(shape.context + shape.queries)),
        device_qkv_(copies_, qkv_),
        device_table_(table_),
        q_(copies_, std::int64_t{shape.tokens()} * kHeads * kHeadDim) {}

  const bench::Shape& shape() const { return work_.shape(); }
  RopeKv fused(int i) const {
    const Attention layer = work_.layer(i);
    return {.qkv = device_qkv_.at(i),
            .qkv_stride = kWidth,
            .rope = device_table_.as<float2>(),
            .q = q_.as<__nv_bfloat16>(i),
            .num_heads = kHeads,
            .cache = layer.cache,
            .batch = layer.batch};
  }
  Rope rotation_of(int i) const {
    return {.qkv = device_qkv_.at(i),
            .qkv_stride = kWidth,
            .rope = device_table_.as<float2>(),
            .q = q_.as<__nv_bfloat16>(i),
            .num_heads = kHeads,
            .num_kv_heads = kKvHeads,
            .batch = work_.layer(i).batch};
  }
  StoreKv store(int i) const {
    const Attention layer = work_.layer(i);
    return {.qkv = device_qkv_.at(i),
            .qkv_stride = kWidth,
            .num_heads = kHeads,
            .cache = layer.cache,
            .batch = layer.batch};
  }

  double tokens() const { return shape().tokens(); }
  double q_bytes() const { return tokens() * kHeads * kHeadDim * 2; }
  double table_bytes() const { return tokens() * kHeadDim * 4; }
  double cache_bytes() const {
    const int row = kHeadDim * kv_element_bytes(shape().format);
    return tokens() * 2 * kKvHeads * (row + (shape().format == KvFormat::fp8 ? 4 : 0));
  }

  void verify_q() const {
    const auto got = q_.first();
    for (const std::int64_t token : spots(shape().tokens())) {
      for (const std::int64_t head : spots(kHeads)) {
        const auto wanted = rotated(token, head);
        for (std::size_t d = 0; d < kHeadDim; ++d) {
          expect_bf16("a rotated q",
                      got[static_cast<std::size_t>((token * kHeads + head) * kHeadDim) + d],
                      wanted[d]);
        }
      }
    }
  }
  void verify_rotated_k() const {
    const auto got = device_qkv_.first();
    for (const std::int64_t token : spots(shape().tokens())) {
      const auto wanted = rotated(token, kHeads);
      for (std::size_t d = 0; d < kHeadDim; ++d) {
        expect_near("a rotated k",
                    got[static_cast<std::size_t>(token * kWidth + kHeads * kHeadDim) + d],
                    wanted[d], 1e-5);
      }
    }
  }
  enum class Keys { rotated, as_they_are };
  void verify_cache(Keys keys) const {
    const KvCache cache = work_.layer(0).cache;
    for (const std::int64_t token : spots(shape().tokens())) {
      for (const std::int64_t head : spots(kKvHeads)) {
        verify_row(
            cache.k, cache.k_scale, token, head,
            keys == Keys::rotated ? rotated(token, kHeads + head) : head_of(token, kHeads + head));
        verify_row(cache.v, cache.v_scale, token, head, head_of(token, kHeads + kKvHeads + head));
      }
    }
  }

 private:
  std::vector<double> head_of(std::int64_t token, std::int64_t head) const {
    const auto begin = qkv_.begin() + token * kWidth + head * kHeadDim;
    return {begin, begin + kHeadDim};
  }
  int position_of(std::int64_t token) const {
    return shape().context + static_cast<int>(token) % shape().queries;
  }
  std::vector<double> rotated(std::int64_t token, std::int64_t head) const {
    const auto x = head_of(token, head);
    std::vector<double> turned(kHeadDim);
    for (std::size_t pair = 0; pair < kHalf; ++pair) {
      const std::size_t at = 2 * (static_cast<std::size_t>(position_of(token)) * kHalf + pair);
      const double cosine = table_[at], sine = table_[at + 1];
      turned[pair] = x[pair] * cosine - x[pair + kHalf] * sine;
      turned[pair + kHalf] = x[pair + kHalf] * cosine + x[pair] * sine;
    }
    return turned;
  }
  void verify_row(const void* cache, const float* scales, std::int64_t token, std::int64_t head,
                  const std::vector<double>& wanted) const {
    const int position = position_of(token);
    const std::int64_t row =
        kv_row(kKvHeads, work_.page_of(static_cast<int>(token) / shape().queries, position),
               static_cast<int>(head), position % kPageTokens);
    const std::int64_t row_bytes = std::int64_t{kHeadDim} * kv_element_bytes(shape().format);
    std::vector<std::uint8_t> bytes(static_cast<std::size_t>(row_bytes));
    cuda_check(cudaMemcpy(bytes.data(), static_cast<const std::uint8_t*>(cache) + row * row_bytes,
                          bytes.size(), cudaMemcpyDeviceToHost));
    if (shape().format == KvFormat::bf16) {
      std::vector<std::uint16_t> halves(kHeadDim);
      std::memcpy(halves.data(), bytes.data(), bytes.size());
      for (std::size_t d = 0; d < kHeadDim; ++d) expect_bf16("a stored row", halves[d], wanted[d]);
      return;
    }
    float scale = 0;
    cuda_check(cudaMemcpy(&scale, scales + row, sizeof(scale), cudaMemcpyDeviceToHost));
    double largest = 0;
    for (const double value : wanted) largest = std::max(largest, std::abs(value));
    expect_near("the scale of a stored row", scale, largest / 448, largest * 1e-6);
    for (std::size_t d = 0; d < kHeadDim; ++d) {
      __nv_fp8_e4m3 number;
      number.__x = bytes[d];
      expect_near("a stored row", double{static_cast<float>(number)} * scale, wanted[d],
                  std::abs(wanted[d]) / 16 + scale * 0x1p-9);
    }
  }

  AttentionWork work_;
  int copies_;
  std::vector<float> qkv_, table_;
  PerLaunch<float> device_qkv_;
  Buffer device_table_;
  PerLaunch<std::uint16_t> q_;
};

void time_fused(const Bench& bench, const bench::Shape& shape) {
  const RopeCase made(shape);
  bench.report({.name = "rope_kv",
                .shape = shape.text(),
                .bytes = made.tokens() * kWidth * 4 + made.table_bytes() + made.q_bytes() +
                         made.cache_bytes(),
                .launch = [&](int i, const Launch& how) { rope_kv(made.fused(i), how); },
                .verify =
                    [&] {
                      made.verify_q();
                      made.verify_cache(RopeCase::Keys::rotated);
                    }});
}

void time_rope(const Bench& bench, const bench::Shape& shape) {
  const RopeCase made(shape);
  bench.report(
      {.name = "rope",
       .shape = fmt::format("{} x {} at {}", shape.sequences, shape.queries, shape.context),
       .bytes = made.tokens() * (kHeads + 2 * kKvHeads) * kHeadDim * 4 + made.table_bytes() +
                made.q_bytes(),
       .launch = [&](int i, const Launch& how) { rope(made.rotation_of(i), how); },
       .verify =
           [&] {
             made.verify_q();
             made.verify_rotated_k();
           }});
}

void time_store(const Bench& bench, const bench::Shape& shape) {
  const RopeCase made(shape);
  bench.report({.name = "store_kv",
                .shape = shape.text(),
                .bytes = made.tokens() * 2 * kKvHeads * kHeadDim * 4 + made.cache_bytes(),
                .launch = [&](int i, const Launch& how) { store_kv(made.store(i), how); },
                .verify = [&] { made.verify_cache(RopeCase::Keys::as_they_are); }});
}

/// One token of so many sequences; of very many tokens, one prompt.
bench::Shape shape_of(std::int64_t tokens, KvFormat format) {
  const int count = static_cast<int>(tokens);
  if (count > 64) return {.queries = count, .format = format};
  return {.sequences = count, .context = kContext, .format = format};
}

void run(const Bench& bench) {
  for (const KvFormat format : {KvFormat::bf16, KvFormat::fp8}) {
    for (const std::int64_t tokens : kBatches) time_fused(bench, shape_of(tokens, format));
    for (const std::int64_t tokens : kBatches) time_store(bench, shape_of(tokens, format));
  }
  for (const std::int64_t tokens : kBatches) time_rope(bench, shape_of(tokens, KvFormat::bf16));
}

}  // namespace

int main() { return gauntlet::bench::run_on_gpu(run); }
