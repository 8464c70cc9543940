#include "model/tokens/o200k_split.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "model/tokens/unicode_classes.h"

namespace gauntlet::model::inline tokens {
namespace {

using ::testing::ElementsAre;

std::vector<std::string> pieces(std::string_view text) {
  std::vector<std::string> all;
  while (!text.empty()) {
    all.emplace_back(text.substr(0, first_piece_size(text)));
    text.remove_prefix(all.back().size());
  }
  return all;
}

TEST(O200kSplit, keeps_a_space_with_the_word_after_it) {
  EXPECT_THAT(pieces("Hello world  of"), ElementsAre("Hello", " world", " ", " of"));
  EXPECT_THAT(pieces("\thello\xC2\xA0you"), ElementsAre("\thello", "\xC2\xA0you"));
}

TEST(O200kSplit, cuts_where_lower_case_turns_upper) {
  EXPECT_THAT(pieces("camelCaseABCDef"), ElementsAre("camel", "Case", "ABCDef"));
  EXPECT_THAT(pieces("ABC DEF"), ElementsAre("ABC", " DEF"));
}

TEST(O200kSplit, gives_back_upper_case_until_a_letter_of_either_case_ends_it) {
  EXPECT_THAT(pieces("A\u4E00BC"), ElementsAre("A\u4E00", "BC"));
  EXPECT_THAT(pieces("A\u4E00BCd"), ElementsAre("A\u4E00BCd"));
}

TEST(O200kSplit, takes_a_mark_as_prefix_or_as_letter) {
  EXPECT_THAT(pieces("\u0301abc"), ElementsAre("\u0301abc"));
  EXPECT_THAT(pieces("\u0301ABC"), ElementsAre("\u0301", "ABC"));
  EXPECT_THAT(pieces("e\u0301E\u0301"), ElementsAre("e\u0301", "E\u0301"));
  EXPECT_THAT(pieces("!!\u0301a"), ElementsAre("!!\u0301", "a"));
}

TEST(O200kSplit, keeps_contractions_with_their_word) {
  EXPECT_THAT(pieces("I'm we'LL it's' x'qu"),
              ElementsAre("I'm", " we'LL", " it's", "'", " x", "'qu"));
  EXPECT_THAT(pieces("it'\u017F"), ElementsAre("it'\u017F"));
  EXPECT_THAT(pieces("a'r a'l a'"), ElementsAre("a", "'r", " a", "'l", " a", "'"));
}

TEST(O200kSplit, takes_three_digits_at_a_time) {
  EXPECT_THAT(pieces("1234567 89"), ElementsAre("123", "456", "7", " ", "89"));
  EXPECT_THAT(pieces("\u0661\u00BD\u2167\u0664"), ElementsAre("\u0661\u00BD\u2167", "\u0664"));
}

TEST(O200kSplit, ends_symbols_with_line_ends_and_slashes) {
  EXPECT_THAT(pieces("a ==>\r\n/x"), ElementsAre("a", " ==>\r\n/", "x"));
  EXPECT_THAT(pieces("//\n\n  y"), ElementsAre("//\n\n", " ", " y"));
}

TEST(O200kSplit, cuts_white_space_after_its_last_line_end) {
  EXPECT_THAT(pieces("a \n \n  b"), ElementsAre("a", " \n \n", " ", " b"));
  EXPECT_THAT(pieces("a   "), ElementsAre("a", "   "));
  EXPECT_THAT(pieces("a \u3000 1"), ElementsAre("a", " \u3000", " ", "1"));
}

TEST(O200kSplit, takes_bytes_that_are_no_utf8_as_symbols) {
  EXPECT_THAT(pieces("\xFF\xFE"), ElementsAre("\xFF\xFE"));
  EXPECT_THAT(pieces("\xE4\xB8 a"), ElementsAre("\xE4\xB8", " a"));
  EXPECT_THAT(pieces("\xE4\xB8"
                     "a"),
              ElementsAre("\xE4\xB8"
                          "a"));
}

TEST(UnicodeClasses, are_those_of_unicode_16) {
  EXPECT_EQ(char_class(U'A'), CharClass::upper);
  EXPECT_EQ(char_class(0x01C5), CharClass::upper);   // Lt
  EXPECT_EQ(char_class(0x02B0), CharClass::letter);  // Lm
  EXPECT_EQ(char_class(0x0301), CharClass::mark);
  EXPECT_EQ(char_class(0x2028), CharClass::space);
  EXPECT_EQ(char_class(0x0D), CharClass::newline);
  EXPECT_EQ(char_class(0x1CCF0), CharClass::number);  // outlined digit zero, new in 16
  EXPECT_EQ(char_class(0xA7DA), CharClass::upper);    // new in 16
  EXPECT_EQ(char_class(0x323AF), CharClass::letter);  // the last letter
  EXPECT_EQ(char_class(0x323B0), CharClass::other);
  EXPECT_EQ(char_class(0xE0100), CharClass::mark);
  EXPECT_EQ(char_class(0xE01F0), CharClass::other);
  EXPECT_EQ(char_class(0xFFFFFFFF), CharClass::other);
}

}  // namespace
}  // namespace gauntlet::model::inline tokens
