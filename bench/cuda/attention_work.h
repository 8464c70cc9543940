// Batches over shuffled pages of random keys and values, as many layers as exceed the L2, and what
// attention over them must give.
#pragma once
#include <cuda_runtime_api.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "bench/cuda/speed.h"
#include "core/random.h"
#include "kernels/cuda/attention/kv_cache.h"

namespace gauntlet::bench {

using kernels::cuda::Attention;
using kernels::cuda::kHeadDim;
using kernels::cuda::kPageTokens;
using kernels::cuda::KvFormat;

struct Shape {
  int sequences = 1;
  int context = 0;
  int queries = 1;
  KvFormat format = KvFormat::bf16;
  int window = 0;

  int tokens() const { return sequences * queries; }
  std::string text() const;
};

class AttentionWork {
 public:
  explicit AttentionWork(const Shape& shape);

  const Shape& shape() const { return shape_; }
  int num_layers() const { return layers_; }
  Attention layer(int i) const;

  /// Keys that all queries see, summed.
  double visible() const;
  double flop() const { return visible() * kHeads * kHeadDim * 4; }
  /// Keys and values of the tokens that are seen, once for each sequence; queries and results.
  double bytes() const;

  /// What the last launch left, [tokens, heads, 64] of bf16.
  std::vector<std::uint16_t> output() const;
  /// Compares some results of layer 0 with the definition.
  void verify() const;
  int page_of(int sequence, int position) const {
    return table_[static_cast<std::size_t>(sequence * pages_ + position / kPageTokens)];
  }

 private:
  int num_pages() const { return shape_.sequences * (pages_ - first_page_); }
  std::vector<std::int32_t> shuffled_pages() const;
  std::vector<double> cached_row(const std::vector<std::uint8_t>& pattern, std::int64_t row) const;
  void verify(int token, int head, const std::vector<std::uint16_t>& got) const;

  Shape shape_;
  int pages_;          // of a sequence
  int first_page_;     // that a query sees; those before it are not held
  std::int64_t rows_;  // of a layer
  std::int64_t layer_bytes_;
  int layers_;
  std::vector<std::int32_t> table_;
  std::vector<std::uint8_t> k_pattern_, v_pattern_;
  std::vector<std::uint16_t> q_pattern_;
  Buffer k_, v_, k_scales_, v_scales_, sinks_, q_, out_, first_, context_, token_sequence_,
      device_table_;
};

}  // namespace gauntlet::bench
