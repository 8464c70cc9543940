#include "engine/cuda/decode_shapes.h"

#include <algorithm>
#include <bit>

namespace gauntlet::engine::cuda {
namespace {

/// Batches up to here run at their own size; larger ones are padded to the next of kPadTo.
constexpr int kExactBatch = 16;
constexpr int kPadTo = 8;
/// A known token and seven guesses behind it, the most that are chosen by measurement.
constexpr int kMostGuessRows = 8;
/// Tables are at least so wide, and then a power of two: a graph serves a sequence for long.
constexpr int kLeastTablePages = 16;

}  // namespace

int padded_batch(int sequences, const DecodeLimits& limits) {
  if (sequences <= kExactBatch) return sequences;
  return std::min((sequences + kPadTo - 1) / kPadTo * kPadTo, limits.most_rows());
}

int padded_table(int pages, const DecodeLimits& limits) {
  const auto wide = std::bit_ceil(static_cast<unsigned>(std::max(pages, kLeastTablePages)));
  return std::min(limits.pages, static_cast<int>(wide));
}

std::vector<StepShape> decode_shapes(const DecodeLimits& limits) {
  std::vector<StepShape> shapes;
  for (int pages = 1; pages <= limits.pages;) {
    const int table = padded_table(pages, limits);
    for (const bool greedy : {true, false}) {
      for (int sequences = 1; sequences <= limits.sequences; ++sequences) {
        const int batch = padded_batch(sequences, limits);
        shapes.push_back({.tokens = batch,
                          .sequences = batch,
                          .table_stride = table,
                          .logit_rows = batch,
                          .max_query = 1,
                          .greedy = greedy});
        sequences = batch;
      }
      for (int rows = 2; rows <= std::min(kMostGuessRows, limits.rows); ++rows) {
        shapes.push_back({.tokens = rows,
                          .sequences = rows,
                          .table_stride = table,
                          .logit_rows = rows,
                          .max_query = 1,
                          .guesses = true,
                          .greedy = greedy});
      }
    }
    pages = table + 1;
  }
  return shapes;
}

}  // namespace gauntlet::engine::cuda
