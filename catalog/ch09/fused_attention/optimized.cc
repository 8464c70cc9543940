// The three operations block by block: the scores of 32 queries stay in the second-level cache from
// their product to the values'.
#include <algorithm>

#include "catalog/ch09/fused_attention/pair.h"
#include "catalog/ch09/fused_attention/rows.h"
#include "lab/author/side.h"

namespace gauntlet::ch09::fused_attention::cpu {
namespace {

constexpr std::int64_t kBlockRows = 32;

}  // namespace

lab::Side optimized(const Params& p, const lab::Cpu&) {
  return [p] {
    const std::int64_t all_rows = p.heads * p.queries;
    const auto head_of = [&](std::int64_t row) { return row / p.queries; };
    std::fill_n(p.out, all_rows * kHeadDim, 0.0f);
    for (std::int64_t row = 0; row < all_rows; row += kBlockRows) {
      const Rows<float> scores = {p.scores, p.keys};  // the same rows for every block
      std::fill_n(scores.data, kBlockRows * p.keys, 0.0f);
      add_product({p.q + row * kHeadDim, kHeadDim},
                  {p.k + head_of(row) * kHeadDim * p.keys, p.keys}, scores, kBlockRows, p.keys,
                  kHeadDim);
      for (std::int64_t i = 0; i < kBlockRows; ++i) {
        softmax(scores.data + i * p.keys, p.keys, kScale);
      }
      add_product({scores.data, p.keys}, {p.v + head_of(row) * p.keys * kHeadDim, kHeadDim},
                  {p.out + row * kHeadDim, kHeadDim}, kBlockRows, kHeadDim, p.keys);
    }
  };
}

}  // namespace gauntlet::ch09::fused_attention::cpu
