#include "core/text/toml.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/property_check.h"
#include "core/random.h"

namespace gauntlet {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::string fault_of(std::string_view text) {
  const auto items = parse_toml(text, "f.toml");
  return items ? "none" : items.error().message;
}

TEST(Toml, reads_every_kind_of_value) {
  const auto items = parse_toml(
      "# a comment\n"
      "host = \"::1\"  # of IPv6\n"
      "\n"
      "port=8_000\r\n"
      "gpu-memory = 0.5\n"
      "deterministic = true\n"
      "key = 'a#b=\"c\"\\'\n"
      "text = \"tab\\t quote\\\" \\u00e9 \\U0001F600\"\n"
      "hosts = [\"a\", # first\n  'b,c',\n]\n"
      "empty = []\n"
      "small = -1e-3",
      "f.toml");
  ASSERT_TRUE(items) << items.error().message;
  ASSERT_EQ(items->size(), 9u);
  EXPECT_EQ((*items)[0].values.front(), "::1");
  EXPECT_EQ((*items)[0].line, 2);
  EXPECT_EQ((*items)[1].values.front(), "8000");
  EXPECT_EQ((*items)[1].type, TomlType::integer);
  EXPECT_EQ((*items)[2].type, TomlType::number);
  EXPECT_EQ((*items)[3].type, TomlType::boolean);
  EXPECT_EQ((*items)[4].values.front(), "a#b=\"c\"\\");
  EXPECT_EQ((*items)[5].values.front(), "tab\t quote\" \xC3\xA9 \xF0\x9F\x98\x80");
  EXPECT_THAT((*items)[6].values, ElementsAre("a", "b,c"));
  EXPECT_EQ((*items)[6].type, TomlType::list);
  EXPECT_TRUE((*items)[7].values.empty());
  EXPECT_EQ((*items)[8].values.front(), "-0.001");
  EXPECT_EQ((*items)[8].line, 13);
}

TEST(Toml, says_where_a_file_is_wrong) {
  EXPECT_THAT(fault_of("a = 1\n[serve]\n"), HasSubstr("f.toml:2: 'serve' is a table"));
  EXPECT_THAT(fault_of("a = 1\n[=]\n"), HasSubstr("f.toml:2: while parsing key"));
  EXPECT_THAT(fault_of("a.b = 1\n"), HasSubstr("f.toml:1: 'a' is a table"));
  EXPECT_THAT(fault_of("a = [{b = 1}]\n"), HasSubstr("'a' is a table"));
  EXPECT_THAT(fault_of("a = [[1]]\n"), HasSubstr("the list of 'a'"));
  EXPECT_THAT(fault_of("a = 2026-01-01\n"), HasSubstr("'a' is a date"));
  EXPECT_THAT(fault_of("a = 1\na = 2\n"), HasSubstr("f.toml:2: while parsing key-value pair"));
  EXPECT_THAT(fault_of("host = localhost\n"), HasSubstr("a text stands in quotes"));
  EXPECT_THAT(fault_of("host = \"x\n"), HasSubstr("f.toml:1: while parsing string"));
  EXPECT_THAT(fault_of("host = \"\\x\"\n"), HasSubstr("escape"));
  EXPECT_THAT(fault_of("host = \"\\uD800\"\n"), HasSubstr("surrogates"));
  EXPECT_THAT(fault_of("port = 1 2\n"), HasSubstr("saw '2'"));
  EXPECT_THAT(fault_of("port\n"), HasSubstr("expected '='"));
  EXPECT_THAT(fault_of("a = [1 2]\n"), HasSubstr("comma"));
  EXPECT_THAT(fault_of("a = [1,\n"), HasSubstr("while parsing array"));
  EXPECT_THAT(fault_of("a =\n"), HasSubstr("expected value"));
  EXPECT_THAT(fault_of("a = 99999999999999999999\n"), HasSubstr("64 bits"));
  EXPECT_THAT(fault_of("a = \"\xFF\"\n"), HasSubstr("utf-8"));
}

TEST(Toml, quotes_any_text_so_that_it_is_read_back) {
  check_property("a quoted text is read back", [](const std::vector<std::uint8_t>& picks) {
    std::string text;
    for (const std::uint8_t pick : picks) text += static_cast<char>(1 + pick % 127);
    const auto items = parse_toml("k = " + toml_quoted(text) + "\n", "f");
    RC_ASSERT(static_cast<bool>(items));
    RC_ASSERT(items->front().values.front() == text);
  });
}

TEST(Toml, survives_whatever_a_file_holds) {
  Random random(11);
  const std::string alphabet = "ab=\"'\\#[],.\n\t 01u";
  for (int i = 0; i < 5000; ++i) {
    std::string text;
    for (std::uint64_t n = random.next() % 24; n > 0; --n) {
      text += alphabet[random.next() % alphabet.size()];
    }
    const auto items = parse_toml(text, "f");
    EXPECT_TRUE(items || items.error().message.find("f:") != std::string::npos) << text;
  }
}

}  // namespace
}  // namespace gauntlet
