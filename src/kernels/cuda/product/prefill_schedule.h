// Which piece of a prefill product a block computes next. Wide tiles of all experts come before
// narrower ones, so that blocks that walk with a constant stride end together.
#pragma once
#include <cstdint>

#include "kernels/cuda/product/fragments.h"

namespace gauntlet::kernels::cuda::inline product {

inline constexpr int kNarrowestTile = 16;

/// `width` columns are computed, the first `slots` of them are stored.
struct PrefillWork {
  int expert;
  int row_tile;
  int first_slot;
  int slots;
  int width;
};

/// Walks the items 0, 1, ... of a product; the same for every thread that asks. The last tile of an
/// expert is as narrow as a half or a quarter of the others where that is enough for it.
struct PrefillSchedule {
  const std::int32_t* first_slot;  // [num_experts + 1]
  int num_experts;
  int row_tiles;
  int tokens;      // of a full tile
  int width;       // of the tiles now walked through, at first `tokens`
  int expert = 0;  // that has tiles of this width
  int before = 0;  // items of experts already passed

  /// False past the last item. Items must be asked for in rising order.
  GAUNTLET_HOST_DEVICE bool find(int item, PrefillWork& work) {
    for (; width >= narrowest(); width /= 2, expert = 0) {
      for (; expert < num_experts; ++expert) {
        const int first = first_slot[expert], count = first_slot[expert + 1] - first;
        const int full = count / tokens, rest_width = width_of(count - full * tokens);
        const int begin = width == tokens ? 0 : full;
        const int tiles = (width == tokens ? full : 0) + (width == rest_width ? 1 : 0);
        const int local = item - before;
        if (local >= tiles * row_tiles) {
          before += tiles * row_tiles;
          continue;
        }
        // Tiles that run at the same time share rows and tokens, about as many of the one as of the
        // other: what they read stays in L2.
        constexpr int kRaster = 12;
        const int group = local / (kRaster * row_tiles), in_group = local % (kRaster * row_tiles);
        const int left = tiles - group * kRaster, across = left < kRaster ? left : kRaster;
        const int tile = begin + group * kRaster + in_group % across;
        const int remaining = count - tile * tokens;
        work = {.expert = expert,
                .row_tile = in_group / across,
                .first_slot = first + tile * tokens,
                .slots = remaining < width ? remaining : width,
                .width = width};
        return true;
      }
    }
    return false;
  }

  GAUNTLET_HOST_DEVICE int narrowest() const {
    return tokens / 4 > kNarrowestTile ? tokens / 4 : kNarrowestTile;
  }

  /// 0 where there is nothing left.
  GAUNTLET_HOST_DEVICE int width_of(int slots) const {
    if (slots == 0) return 0;
    int enough = tokens;
    while (enough / 2 >= slots && enough / 2 >= narrowest()) enough /= 2;
    return enough;
  }
};

}  // namespace gauntlet::kernels::cuda::inline product
