// Block by block of queries: the scores of 64 queries and all keys, the softmax of their rows, and
// the product with the values.
#include <algorithm>

#include "catalog/ch10/flash_attention/pair.h"
#include "catalog/ch10/flash_attention/rows.h"
#include "lab/author/side.h"

namespace gauntlet::ch10::flash_attention::cpu {
namespace {

constexpr std::int64_t kBlockRows = 64;

}  // namespace

lab::Side baseline(const Params& p, const lab::Cpu&) {
  return [p] {
    std::fill_n(p.out, p.heads * p.queries * kHeadDim, 0.0f);
    for (std::int64_t row = 0; row < p.heads * p.queries; row += kBlockRows) {
      const std::int64_t head = row / p.queries;
      const Rows<float> scores = {p.scores, p.keys};  // the same rows for every block
      std::fill_n(scores.data, kBlockRows * p.keys, 0.0f);
      add_product({p.q + row * kHeadDim, kHeadDim}, {p.k + head * kHeadDim * p.keys, p.keys},
                  scores, kBlockRows, p.keys, kHeadDim);
      for (std::int64_t i = 0; i < kBlockRows; ++i) {
        auto* words = reinterpret_cast<Vector*>(scores.data + i * p.keys);
        const std::int64_t count = p.keys / kLanes;
        const float inverse = 1 / exponentials(words, count, greatest(words, count));
        for (std::int64_t word = 0; word < count; ++word) words[word] *= inverse;
      }
      add_product({scores.data, p.keys}, {p.v + head * p.keys * kHeadDim, kHeadDim},
                  {p.out + row * kHeadDim, kHeadDim}, kBlockRows, kHeadDim, p.keys);
    }
  };
}

}  // namespace gauntlet::ch10::flash_attention::cpu
