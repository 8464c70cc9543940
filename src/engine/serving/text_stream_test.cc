// Is nothing shown too early, and everything in the end?
#include "engine/serving/text_stream.h"

#include <gtest/gtest.h>

#include "core/random.h"
#include "engine/tiny_tokenizer.h"

namespace gauntlet::engine::inline serving {
namespace {

/// The tokens of single bytes, so that every place can be a border between tokens.
std::vector<std::int32_t> byte_tokens(std::string_view text) {
  std::vector<std::int32_t> ids;
  for (const char byte : text) {
    for (std::int32_t id = 0; id < tiny_tokenizer().vocab_size(); ++id) {
      if (tiny_tokenizer().token_bytes(id) == std::string_view(&byte, 1)) {
        ids.push_back(id);
        break;
      }
    }
  }
  EXPECT_EQ(ids.size(), text.size());
  return ids;
}

struct Shown {
  std::vector<std::string> pieces;
  std::string text;
  bool stopped = false;
};

Shown stream(std::string_view text, const std::vector<std::string>& stops) {
  TextStream stream(tiny_tokenizer(), stops);
  Shown shown;
  for (const std::int32_t id : byte_tokens(text)) {
    shown.pieces.push_back(stream.push(id));
    shown.text += shown.pieces.back();
    if (stream.stopped()) break;
  }
  shown.text += stream.finish();
  shown.stopped = stream.stopped();
  return shown;
}

TEST(TextStream, shows_each_piece_at_once_without_stop_strings) {
  EXPECT_EQ(stream("abc", {}).pieces, (std::vector<std::string>{"a", "b", "c"}));
}

TEST(TextStream, ends_before_a_stop_string_that_is_split_over_tokens) {
  const Shown shown = stream("one END two", {"END"});
  EXPECT_EQ(shown.text, "one ");
  EXPECT_TRUE(shown.stopped);
}

TEST(TextStream, gives_back_what_only_began_like_a_stop_string) {
  const Shown shown = stream("one ENd two EN", {"END", "EX"});
  EXPECT_EQ(shown.text, "one ENd two EN");
  EXPECT_FALSE(shown.stopped);
  EXPECT_EQ(shown.pieces[4], "") << "the E could have begun END";
  EXPECT_EQ(shown.pieces[6], "ENd");
}

TEST(TextStream, finds_a_stop_string_that_overlaps_its_own_beginning) {
  EXPECT_EQ(stream("xaaab!", {"aab"}).text, "xa");
  EXPECT_EQ(stream("ababac", {"abac"}).text, "ab");
}

TEST(TextStream, takes_the_earliest_of_several_stop_strings) {
  EXPECT_EQ(stream("say hello there", {"there", "lo"}).text, "say hel");
}

TEST(TextStream, holds_a_character_back_until_it_is_whole) {
  const Shown shown = stream("a\xE2\x82\xAC.", {});
  EXPECT_EQ(shown.pieces, (std::vector<std::string>{"a", "", "", "\xE2\x82\xAC", "."}));
  EXPECT_EQ(stream("a\xE2\x82", {}).text, "a\xEF\xBF\xBD") << "cut short: one U+FFFD";
}

TEST(TextStream, agrees_with_a_plain_search_whatever_the_text) {
  const std::vector<std::string> stops = {"abab", "bba", "caab"};
  Random random(5);
  for (int i = 0; i < 300; ++i) {
    std::string text;
    for (int n = 0; n < 24; ++n) text += static_cast<char>('a' + random.next_below(3));
    std::size_t end = std::string::npos;
    // The first to be complete ends the text, at the place where it begins.
    for (std::size_t size = 1; size <= text.size() && end == std::string::npos; ++size) {
      for (const auto& stop : stops) end = std::min(end, text.substr(0, size).find(stop));
    }
    EXPECT_EQ(stream(text, stops).text, text.substr(0, end)) << text;
  }
}

}  // namespace
}  // namespace gauntlet::engine::inline serving
