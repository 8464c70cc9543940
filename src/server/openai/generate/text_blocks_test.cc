#include "server/openai/generate/text_blocks.h"

#include <gtest/gtest.h>

#include "core/random.h"

namespace gauntlet::server::inline openai {
namespace {

TEST(TextBlocks, give_back_what_was_appended_in_any_portions) {
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    Random random(seed);
    TextBlocks blocks;
    std::string all, taken;
    for (int i = 0; i < 60; ++i) {
      const std::string text(random.next_below(i % 7 == 0 ? 200'000 : 300),
                             static_cast<char>('a' + i % 26));
      switch (random.next_below(5)) {
        case 0: {
          TextBlocks other;
          other.append("begun " + text);
          other.take(6);
          blocks.append(std::move(other));
          all += text;
          break;
        }
        case 1:
          taken += blocks.take(random.next_below(100'000));
          break;
        case 2:
          blocks.append_block(text);
          all += text;
          break;
        default:
          blocks.append(text);
          all += text;
      }
      ASSERT_EQ(blocks.size(), all.size() - taken.size());
      ASSERT_EQ(blocks.empty(), all.size() == taken.size());
    }
    while (!blocks.empty()) taken += blocks.take(1 + random.next_below(100'000));
    EXPECT_EQ(taken, all);
    EXPECT_EQ(blocks.take(10), "");
  }
}

}  // namespace
}  // namespace gauntlet::server::inline openai
