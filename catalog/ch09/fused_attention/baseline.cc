// Three operations over all heads: the scores of every query and key, the softmax of their rows,
// and the product with the values.
#include <algorithm>

#include "catalog/ch09/fused_attention/pair.h"
#include "catalog/ch09/fused_attention/rows.h"
#include "lab/author/side.h"

namespace gauntlet::ch09::fused_attention::cpu {
namespace {

constexpr std::int64_t kBlockRows = 32;

}  // namespace

lab::Side baseline(const Params& p, const lab::Cpu&) {
  return [p] {
    const std::int64_t all_rows = p.heads * p.queries;
    const auto head_of = [&](std::int64_t row) { return row / p.queries; };
    std::fill_n(p.scores, all_rows * p.keys, 0.0f);
    for (std::int64_t row = 0; row < all_rows; row += kBlockRows) {
      add_product({p.q + row * kHeadDim, kHeadDim},
                  {p.k + head_of(row) * kHeadDim * p.keys, p.keys},
                  {p.scores + row * p.keys, p.keys}, kBlockRows, p.keys, kHeadDim);
    }
    for (std::int64_t row = 0; row < all_rows; ++row) {
      softmax(p.scores + row * p.keys, p.keys, kScale);
    }
    std::fill_n(p.out, all_rows * kHeadDim, 0.0f);
    for (std::int64_t row = 0; row < all_rows; row += kBlockRows) {
      add_product({p.scores + row * p.keys, p.keys},
                  {p.v + head_of(row) * p.keys * kHeadDim, kHeadDim},
                  {p.out + row * kHeadDim, kHeadDim}, kBlockRows, kHeadDim, p.keys);
    }
  };
}

}  // namespace gauntlet::ch09::fused_attention::cpu
