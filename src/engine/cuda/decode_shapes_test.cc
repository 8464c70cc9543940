#include "engine/cuda/decode_shapes.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace gauntlet::engine::cuda {
namespace {

constexpr DecodeLimits kLimits{.sequences = 61, .pages = 100};

TEST(DecodeShapes, every_batch_and_context_falls_on_one_of_them) {
  const auto shapes = decode_shapes(kLimits);
  for (int sequences = 1; sequences <= kLimits.sequences; ++sequences) {
    const int batch = padded_batch(sequences, kLimits);
    EXPECT_GE(batch, sequences);
    for (int pages = 1; pages <= kLimits.pages; ++pages) {
      const int table = padded_table(pages, kLimits);
      EXPECT_GE(table, pages);
      EXPECT_EQ(std::ranges::count_if(shapes,
                                      [&](const StepShape& shape) {
                                        return shape.greedy && shape.tokens == batch &&
                                               shape.table_stride == table;
                                      }),
                1)
          << sequences << " sequences of " << pages << " pages";
    }
  }
}

TEST(DecodeShapes, are_few_and_begin_with_short_contexts) {
  const auto shapes = decode_shapes(kLimits);
  // 16 batches as they are, then 24, 32, .. 56 and 61; tables of 16, 32, 64 and 100; greedy or not.
  EXPECT_EQ(shapes.size(), (16 + 6) * 4 * 2);
  EXPECT_EQ(shapes.front().table_stride, 16);
  EXPECT_TRUE(std::ranges::is_sorted(shapes, {}, &StepShape::table_stride));
  EXPECT_EQ(shapes.back().table_stride, 100);
  EXPECT_EQ(shapes.back().tokens, 61);
}

TEST(DecodeShapes, hold_one_sequence_with_up_to_seven_guesses) {
  const auto shapes = decode_shapes({.sequences = 1, .pages = 20, .rows = 16});
  for (const int table : {16, 20}) {
    for (int rows = 2; rows <= 8; ++rows) {
      EXPECT_EQ(std::ranges::count_if(shapes,
                                      [&](const StepShape& shape) {
                                        return shape.guesses && shape.greedy &&
                                               shape.tokens == rows && shape.table_stride == table;
                                      }),
                1)
          << rows << " rows, " << table << " pages";
    }
  }
  EXPECT_EQ(shapes.size(), (1 + 7) * 2 * 2u);
}

TEST(DecodeShapes, one_sequence_of_one_page_has_one_table) {
  const auto shapes = decode_shapes({.sequences = 1, .pages = 1});
  ASSERT_EQ(shapes.size(), 2u);
  EXPECT_EQ(shapes[0].tokens, 1);
  EXPECT_EQ(shapes[0].table_stride, 1);
}

}  // namespace
}  // namespace gauntlet::engine::cuda
