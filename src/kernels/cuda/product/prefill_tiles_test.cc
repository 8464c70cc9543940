#include "kernels/cuda/product/prefill_tiles.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <tuple>
#include <vector>

#include "kernels/cuda/product/prefill_schedule.h"

namespace gauntlet::kernels::cuda::inline product {
namespace {

PrefillSchedule schedule_of(const std::vector<std::int32_t>& first_slot, int row_tiles,
                            int tokens) {
  return {.first_slot = first_slot.data(),
          .num_experts = static_cast<int>(first_slot.size()) - 1,
          .row_tiles = row_tiles,
          .tokens = tokens,
          .width = tokens};
}

TEST(PrefillSchedule, covers_every_row_tile_and_slot_once) {
  for (const auto& [tokens, consumers] : kPrefillTiles) {
    const int n = tokens;
    const std::vector<int> counts{0, 1, n - 1, n, n + 1, 30 * n + 5, n / 2, n / 4 + 1, 0};
    std::vector<std::int32_t> first_slot{0};
    for (const int count : counts) first_slot.push_back(first_slot.back() + count);
    for (const int row_tiles : {1, 3, 23}) {
      std::set<std::tuple<int, int, int>> seen;  // expert, row tile, slot
      auto schedule = schedule_of(first_slot, row_tiles, n);
      PrefillWork work{};
      int last_width = n;
      for (int item = 0; schedule.find(item, work); ++item) {
        ASSERT_LE(work.slots, work.width);
        ASSERT_LE(work.width, last_width) << "wide tiles come first";
        ASSERT_GE(work.width, std::max(kNarrowestTile, n / 4));
        last_width = work.width;
        for (int slot = 0; slot < work.slots; ++slot) {
          ASSERT_TRUE(seen.emplace(work.expert, work.row_tile, work.first_slot + slot).second);
        }
        const auto e = static_cast<std::size_t>(work.expert);
        ASSERT_GE(work.first_slot, first_slot[e]);
        ASSERT_LE(work.first_slot + work.slots, first_slot[e + 1]);
      }
      EXPECT_EQ(seen.size(), static_cast<std::size_t>(first_slot.back() * row_tiles));
    }
  }
}

TEST(PrefillSchedule, finds_the_same_work_with_any_stride) {
  const std::vector<std::int32_t> first_slot{0, 70, 70, 200, 201};
  std::vector<PrefillWork> all;
  auto every = schedule_of(first_slot, 5, 64);
  PrefillWork work{};
  for (int item = 0; every.find(item, work); ++item) all.push_back(work);
  for (int block = 0; block < 7; ++block) {
    auto schedule = schedule_of(first_slot, 5, 64);
    int item = block;
    for (; schedule.find(item, work); item += 7) {
      const PrefillWork& expected = all.at(static_cast<std::size_t>(item));
      EXPECT_EQ(work.expert, expected.expert);
      EXPECT_EQ(work.row_tile, expected.row_tile);
      EXPECT_EQ(work.first_slot, expected.first_slot);
    }
    EXPECT_GE(item, static_cast<int>(all.size()));
  }
}

TEST(PrefillSchedule, has_no_work_without_tokens) {
  const std::vector<std::int32_t> first_slot{0, 0, 0};
  auto schedule = schedule_of(first_slot, 4, 16);
  PrefillWork work{};
  EXPECT_FALSE(schedule.find(0, work));
}

TEST(PrefillTiles, are_wide_where_tokens_are_many) {
  const auto tile = choose_prefill_tile({.rows = 5120, .cols = 2880, .num_columns = 8192});
  EXPECT_GE(tile.tokens, 128);
  EXPECT_GE(tile.consumers, 2);
}

TEST(PrefillTiles, read_many_rows_once_for_a_small_batch) {
  for (const std::int64_t tokens : {1, 9, 16, 17, 32, 33, 64}) {
    const auto tile = choose_prefill_tile({.rows = 201088, .cols = 2880, .num_columns = tokens});
    EXPECT_GE(tile.tokens, tokens);
    EXPECT_GE(tile.consumers, 2);
  }
}

TEST(PrefillTiles, spread_few_rows_over_more_blocks) {
  for (const std::int64_t rows : {32, 2880, 5120}) {
    const auto tile = choose_prefill_tile({.rows = rows, .cols = 4096, .num_columns = 16});
    EXPECT_EQ(tile, (PrefillTile{.tokens = 16, .consumers = 1}));
  }
}

TEST(PrefillTiles, hold_the_slots_of_a_busy_expert) {
  const auto tokens_of = [](std::int64_t slots) {
    return choose_prefill_tile({.format = WeightFormat::mxfp4,
                                .rows = 5760,
                                .cols = 2880,
                                .num_columns = slots,
                                .num_experts = 32})
        .tokens;
  };
  EXPECT_EQ(tokens_of(1), 16);
  EXPECT_EQ(tokens_of(256), 16);
  EXPECT_GE(tokens_of(65536), 128);
}

TEST(PrefillTiles, are_chosen_from_the_list) {
  for (const auto format : {WeightFormat::bf16, WeightFormat::mxfp4}) {
    for (const int experts : {0, 32, 128}) {
      for (std::int64_t columns = 1; columns <= 65536; columns *= 3) {
        const auto tile = choose_prefill_tile({.format = format,
                                               .rows = 2880,
                                               .cols = 2880,
                                               .num_columns = columns,
                                               .num_experts = experts});
        EXPECT_NE(std::ranges::find(kPrefillTiles, tile), kPrefillTiles.end());
      }
    }
  }
}

}  // namespace
}  // namespace gauntlet::kernels::cuda::inline product
