#include "engine/speculation/ngram.h"

#include <gtest/gtest.h>

#include "core/random.h"

namespace gauntlet::engine::inline speculation {
namespace {

Draft guess(NgramDrafter& drafter, const std::vector<std::int32_t>& tokens, std::int64_t most) {
  const DraftWish wish{.id = 1, .tokens = tokens, .most = most};
  return drafter.propose({&wish, 1})[0];
}

TEST(NgramDrafter, goes_on_as_the_text_did_after_the_same_tokens) {
  NgramDrafter drafter;
  EXPECT_EQ(guess(drafter, {1, 2, 3, 4, 5, 1, 2}, 3), (Draft{3, 4, 5}));
  EXPECT_EQ(guess(drafter, {1, 2, 3, 4, 5, 1, 2, 3}, 2), (Draft{4, 5}));
}

TEST(NgramDrafter, believes_the_longest_run_and_of_equals_the_last) {
  NgramDrafter drafter;
  EXPECT_EQ(guess(drafter, {9, 1, 2, 3, 8, 1, 2, 4, 9, 1, 2}, 1), (Draft{3}));
  NgramDrafter other;
  EXPECT_EQ(guess(other, {1, 2, 3, 8, 1, 2, 4, 7, 1, 2}, 1), (Draft{4}));
}

Draft guess_tree(NgramDrafter& drafter, const std::vector<std::int32_t>& tokens, std::int64_t most,
                 const TreeShape& tree) {
  const DraftWish wish{.id = 1, .tokens = tokens, .most = most, .tree = tree};
  return drafter.propose({&wish, 1})[0];
}

TEST(NgramDrafter, branches_where_the_text_went_on_in_several_ways) {
  const std::vector<std::int32_t> text = {1, 2, 3, 8, 1, 2, 4, 7, 1, 2, 3, 9, 1, 2};
  NgramDrafter drafter;
  Draft expected = {3, 4, 9, 7};
  expected.parents = {-1, -1, 0, 1};
  EXPECT_EQ(guess_tree(drafter, text, 9, {.width = 3, .depth = 2}), expected)
      << "after 3 as the last time; 8 followed another 3 before";
  expected = {3, 4, 9};
  expected.parents = {-1, -1, 0};
  EXPECT_EQ(guess_tree(drafter, text, 3, {.width = 3, .depth = 2}), expected);
  NgramDrafter other;
  EXPECT_EQ(guess_tree(other, {1, 2, 3, 4, 5, 1, 2}, 3, {.width = 3, .depth = 3}), (Draft{3, 4, 5}))
      << "one way is a chain";
}

TEST(NgramDrafter, goes_round_a_short_period) {
  NgramDrafter drafter;
  EXPECT_EQ(guess(drafter, {5, 6, 5, 6, 5, 6}, 5), (Draft{5, 6, 5, 6, 5}));
  EXPECT_EQ(guess(drafter, {5, 6, 5, 6, 5, 6, 6}, 5), Draft{});
}

TEST(NgramDrafter, guesses_nothing_about_what_it_never_saw) {
  NgramDrafter drafter;
  EXPECT_EQ(guess(drafter, {1}, 3), Draft{});
  EXPECT_EQ(guess(drafter, {1, 2, 3, 4}, 3), Draft{});
}

TEST(NgramDrafter, finds_what_a_search_of_the_whole_text_finds) {
  Random random(3);
  for (int round = 0; round < 200; ++round) {
    NgramDrafter kept;
    std::vector<std::int32_t> text;
    for (int t = 0; t < 60; ++t) {
      text.push_back(static_cast<std::int32_t>(random.next_below(4)));
      const Draft draft = guess(kept, text, 1);
      Draft expected;
      for (std::ptrdiff_t length = 4; length >= 2 && expected.empty(); --length) {
        for (auto end = std::ssize(text) - 1; end >= length && expected.empty(); --end) {
          if (std::equal(text.begin() + end - length, text.begin() + end, text.end() - length)) {
            expected.push_back(text[end]);
          }
        }
      }
      ASSERT_EQ(draft, expected);
      if (random.next_below(3) == 0) t += 1, text.push_back(1);
    }
    kept.end(1);
  }
}

}  // namespace
}  // namespace gauntlet::engine::inline speculation
