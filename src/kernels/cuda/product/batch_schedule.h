// Which rows of which experts a block of a batch product takes: shares of equal cost, known from
// the experts' histogram alone.
#pragma once
#include <cstdint>

#include "kernels/cuda/product/prefill_schedule.h"

namespace gauntlet::kernels::cuda::inline product {

/// How the tokens of an expert are cut: so many tiles, about equal, none wider than a kernel has
/// room for.
struct BatchTiles {
  int tiles;
  int width;  // columns computed for each
  int slots;  // of a tile; the last may have fewer
};

GAUNTLET_HOST_DEVICE inline int batch_width(int slots) {
  return slots <= 64 ? (slots + 15) / 16 * 16 : (slots + 31) / 32 * 32;
}

GAUNTLET_HOST_DEVICE inline BatchTiles batch_tiles(int slots, int most_width) {
  if (slots == 0) return {.tiles = 0, .width = 0, .slots = 0};
  const int tiles = (slots + most_width - 1) / most_width;
  const int each = (slots + tiles - 1) / tiles;
  return {.tiles = tiles, .width = batch_width(each), .slots = each};
}

/// Of a stripe of 64 rows with all tokens of its expert, in clocks for two columns: the memory
/// takes what it takes for the weights, the tensor cores and the copies of tokens more for wide
/// tiles.
GAUNTLET_HOST_DEVICE inline int batch_stripe_cost(int slots, int most_width) {
  constexpr int kWeights = 60, kStart = 12;
  const BatchTiles cut = batch_tiles(slots, most_width);
  const int tile = cut.width + kStart;
  return cut.tiles * (tile > kWeights ? tile : kWeights);
}

/// The first stripe of an expert that begins at or behind `boundary`, where the expert's first
/// begins at `start`.
GAUNTLET_HOST_DEVICE inline int batch_stripe_at(int boundary, int start, int cost, int stripes) {
  if (cost == 0 || boundary <= start) return 0;
  const int stripe = (boundary - start + cost - 1) / cost;
  return stripe < stripes ? stripe : stripes;
}

/// Stripes of one expert that a block takes.
struct BatchRun {
  int expert;
  int first_stripe;
  int end_stripe;
  int first_slot;
  int slots;
};

/// Some stripes of a run, a warpgroup for each, with one tile of its tokens. `tokens.row_tile` is
/// the first stripe.
struct BatchWork {
  PrefillWork tokens;
  int stripes;
};

/// Goes over what runs are made of: the stripes of each in groups of at most `most_stripes`, about
/// equal; for each group the tiles of tokens one after the other, while its weights are in L2.
struct BatchWalk {
  const BatchRun* runs;
  int num_runs;
  int most_stripes;
  int most_width;
  int run = 0;
  int group = 0;
  int tile = 0;

  /// False past the last.
  GAUNTLET_HOST_DEVICE bool next(BatchWork& work) {
    if (run == num_runs) return false;
    const BatchRun& now = runs[run];
    const BatchTiles cut = batch_tiles(now.slots, most_width);
    const int stripes = now.end_stripe - now.first_stripe;
    const int groups = (stripes + most_stripes - 1) / most_stripes;
    const int begin = stripes * group / groups, end = stripes * (group + 1) / groups;
    const int left = now.slots - tile * cut.slots;
    work = {.tokens = {.expert = now.expert,
                       .row_tile = now.first_stripe + begin,
                       .first_slot = now.first_slot + tile * cut.slots,
                       .slots = left < cut.slots ? left : cut.slots,
                       .width = cut.width},
            .stripes = end - begin};
    if (++tile < cut.tiles) return true;
    tile = 0;
    if (++group < groups) return true;
    group = 0;
    ++run;
    return true;
  }
};

}  // namespace gauntlet::kernels::cuda::inline product
