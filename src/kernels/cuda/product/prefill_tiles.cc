#include "kernels/cuda/product/prefill_tiles.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "kernels/cuda/product/prefill_schedule.h"

namespace gauntlet::kernels::cuda::inline product {
namespace {

// Of an H200, per SM and clock.
constexpr double kL2Bytes = 32;
// A block of weights from barrier to products, where nothing else limits.
constexpr double kBlockClocks = 200;
// A tile's first stages and its last stores.
constexpr double kTileClocks = 2500;
/// Experts are not equally busy: quarters of them have these shares of the average.
constexpr std::array<double, 4> kBusy{0.5, 0.8, 1.1, 1.6};

double tile_clocks(const PrefillShape& shape, int consumers, int width) {
  const FragmentMatrix matrix{.format = shape.format, .rows = shape.rows, .cols = shape.cols};
  const double tensor = consumers * 4.0 * width / 2;
  const double copies =
      static_cast<double>(consumers * matrix.block_bytes() + width * kBlockCols * 2) / kL2Bytes;
  return static_cast<double>(matrix.col_blocks()) * std::max({tensor, copies, kBlockClocks}) +
         kTileClocks;
}

/// Clocks until the last block has finished.
double product_clocks(const PrefillShape& shape, const PrefillTile& tile) {
  const FragmentMatrix matrix{.format = shape.format, .rows = shape.rows, .cols = shape.cols};
  const std::int64_t row_tiles = (matrix.row_blocks() + tile.consumers - 1) / tile.consumers;
  const PrefillSchedule schedule{.first_slot = nullptr,
                                 .num_experts = 0,
                                 .row_tiles = 0,
                                 .tokens = tile.tokens,
                                 .width = tile.tokens};
  std::array<std::int64_t, kPrefillWidths.size()> items{};
  const auto add = [&](std::int64_t count, std::int64_t experts) {
    const auto index = [](int width) {
      return static_cast<std::size_t>(std::ranges::find(kPrefillWidths, width) -
                                      kPrefillWidths.begin());
    };
    items[index(tile.tokens)] += experts * (count / tile.tokens) * row_tiles;
    const int rest = schedule.width_of(static_cast<int>(count % tile.tokens));
    if (rest > 0) items[index(rest)] += experts * row_tiles;
  };
  if (shape.num_experts == 0) {
    add(shape.num_columns, 1);
  } else {
    const std::int64_t experts = std::min<std::int64_t>(shape.num_experts, shape.num_columns);
    const double average = static_cast<double>(shape.num_columns) / static_cast<double>(experts);
    for (std::size_t i = 0; i < kBusy.size(); ++i) {
      const auto quarters = static_cast<std::int64_t>(kBusy.size());
      const auto quarter = static_cast<std::int64_t>(i);
      add(std::max<std::int64_t>(1, std::llround(average * kBusy[i])),
          experts * (quarter + 1) / quarters - experts * quarter / quarters);
    }
  }

  double clocks = 0;
  std::int64_t passed = 0;
  const auto rounds = [&](std::int64_t n) { return (n + shape.num_sms - 1) / shape.num_sms; };
  for (std::size_t i = kPrefillWidths.size(); i-- > 0;) {
    const std::int64_t more = rounds(passed + items[i]) - rounds(passed);
    clocks += static_cast<double>(more) * tile_clocks(shape, tile.consumers, kPrefillWidths[i]);
    passed += items[i];
  }
  return clocks;
}

}  // namespace

PrefillTile choose_prefill_tile(const PrefillShape& shape) {
  PrefillTile best;
  double least = std::numeric_limits<double>::infinity();
  for (const PrefillTile& tile : kPrefillTiles) {
    const double clocks = product_clocks(shape, tile);
    if (clocks < least) {
      least = clocks;
      best = tile;
    }
  }
  return best;
}

}  // namespace gauntlet::kernels::cuda::inline product
