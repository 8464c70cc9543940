// Does a regular expression take the texts that it matches elsewhere, and is the rest refused?
#include "engine/grammar/regex.h"

#include <gtest/gtest.h>

#include "engine/grammar/schema_cases.h"

namespace gauntlet::engine::grammar {
namespace {

TEST(Pattern, is_ecma_without_what_it_refuses) {
  const auto found = [](std::string_view pattern, std::string_view text) {
    Work work;
    const auto compiled = compile_pattern(pattern, work);
    EXPECT_TRUE(compiled) << pattern;
    return compiled && accepts(compiled->dfa, text);
  };
  EXPECT_TRUE(found("^(?:ab|c)*?$", "abcab"));
  EXPECT_TRUE(found("a|^b$", "xa"));
  EXPECT_FALSE(found("a|^b$", "xb"));
  EXPECT_TRUE(found(R"(^\d{3}-\w\s\S\u00e9\x41[\]\-x^]$)",
                    "123-_ !\xC3\xA9"
                    "A]"));
  EXPECT_TRUE(found("^.$", R"(\")"));
  EXPECT_FALSE(found("^.$", R"(\n)"));
  EXPECT_TRUE(found(R"(^[^a]$)", R"(\n)"));
  EXPECT_TRUE(found("^(a?){3}$", "aa"));
  EXPECT_TRUE(found("^$", ""));
  for (const char* bad : {"(?=a)", R"(\bword)", R"((a)\1)", R"(\p{L})", "a(", "a)", "*", "a{2,1}",
                          "[", "a^b", "(a$)", "[z-a]", "a{99999}", R"(\u{1F600})", "\xFF"}) {
    Work work;
    EXPECT_FALSE(compile_pattern(bad, work)) << bad;
  }
}

TEST(Pattern, looks_ahead_from_its_beginning) {
  expect({R"({"type":"string","pattern":"^(?!x)(?!.*\\.\\.)[a-z.]+$"})",
          {R"("a.b")", R"("ab")"},
          {R"("xa")", R"("a..b")", R"("A")"}});
  expect({R"({"type":"string","pattern":"^(?=.*[0-9])(?=.{3,4}$)[a-z0-9]*$|^q$"})",
          {R"("ab1")", R"("1abc")", R"("q")"},
          {R"("abc")", R"("1")", R"("abcd1")"}});
}

TEST(Regex, holds_a_whole_text) {
  const auto has = [](const char* pattern, std::string_view text) {
    const auto grammar = compile_regex(pattern);
    EXPECT_TRUE(grammar) << pattern;
    return grammar && matches(*grammar, text);
  };
  EXPECT_TRUE(has("a+", "aaa"));
  EXPECT_FALSE(has("a+", "baaa"));
  EXPECT_TRUE(has("^a|b$", "b"));
  EXPECT_TRUE(has("[^x]\\n\"\xC3\xA9", "\t\n\"\xC3\xA9"));
  EXPECT_TRUE(has("a*", ""));
  EXPECT_TRUE(has("(?!b)[a-c]", "c"));
  EXPECT_FALSE(has("(?!b)[a-c]", "b"));
  for (const char* bad : {"(a)\\1", "a(?=b)c", "\\bx", "[", "((a{1000}){1000}){1000}", "[^\\s\\S]"})
    EXPECT_FALSE(compile_regex(bad)) << bad;
}

TEST(Choice, is_one_of_its_texts) {
  const auto grammar = compile_choice({"yes", "yes, but\n", "no"});
  ASSERT_TRUE(grammar);
  for (const char* good : {"yes", "yes, but\n", "no"}) EXPECT_TRUE(matches(*grammar, good));
  for (const char* bad : {"", "y", "yes,", "non"}) EXPECT_FALSE(matches(*grammar, bad));
  EXPECT_TRUE(matches(*compile_choice({""}), ""));
  EXPECT_FALSE(compile_choice({}));
}

}  // namespace
}  // namespace gauntlet::engine::grammar
