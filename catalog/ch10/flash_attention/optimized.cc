// The same blocks, 64 keys at a time: what has been added up is scaled when a greater score turns
// up, so that a tile of scores is used at once and never leaves the first-level cache.
#include <algorithm>
#include <cmath>

#include "catalog/ch10/flash_attention/pair.h"
#include "catalog/ch10/flash_attention/rows.h"
#include "lab/author/side.h"

namespace gauntlet::ch10::flash_attention::cpu {
namespace {

constexpr std::int64_t kBlockRows = 64;
constexpr std::int64_t kTileKeys = 64;
static_assert(kBlockRows * kTileKeys * sizeof(float) <= 16 << 10, "half of a small L1");

void scale_row(float* row, float factor) {
  auto* words = reinterpret_cast<Vector*>(row);
  for (int i = 0; i < kHeadDim / kLanes; ++i) words[i] *= factor;
}

void attend(const Params& p, std::int64_t row) {
  const float* q = p.q + row * kHeadDim;
  const float* k = p.k + row / p.queries * kHeadDim * p.keys;
  const float* v = p.v + row / p.queries * p.keys * kHeadDim;
  float* out = p.out + row * kHeadDim;
  float tops[kBlockRows], sums[kBlockRows] = {};
  std::fill_n(tops, kBlockRows, -INFINITY);
  std::fill_n(out, kBlockRows * kHeadDim, 0.0f);

  for (std::int64_t first = 0; first < p.keys; first += kTileKeys) {
    const std::int64_t keys = std::min(kTileKeys, p.keys - first);
    alignas(64) float tile[kBlockRows][kTileKeys] = {};
    add_product({q, kHeadDim}, {k + first, p.keys}, {tile[0], kTileKeys}, kBlockRows, keys,
                kHeadDim);
    for (std::int64_t i = 0; i < kBlockRows; ++i) {
      auto* words = reinterpret_cast<Vector*>(tile[i]);
      const float top = std::max(tops[i], greatest(words, keys / kLanes));
      const float shrink = std::exp((tops[i] - top) * kScale);
      sums[i] = sums[i] * shrink + exponentials(words, keys / kLanes, top);
      scale_row(out + i * kHeadDim, shrink);
      tops[i] = top;
    }
    add_product({tile[0], kTileKeys}, {v + first * kHeadDim, kHeadDim}, {out, kHeadDim}, kBlockRows,
                kHeadDim, keys);
  }
  for (std::int64_t i = 0; i < kBlockRows; ++i) scale_row(out + i * kHeadDim, 1 / sums[i]);
}

}  // namespace

lab::Side optimized(const Params& p, const lab::Cpu&) {
  return [p] {
    for (std::int64_t row = 0; row < p.heads * p.queries; row += kBlockRows) attend(p, row);
  };
}

}  // namespace gauntlet::ch10::flash_attention::cpu
