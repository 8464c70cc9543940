// Is a text that is written once per token the same JSON as one from a tree?
#include "server/openai/json_text.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "core/random.h"
#include "server/openai/fields.h"

namespace gauntlet::server::inline openai {
namespace {

std::string written(std::string_view text) {
  std::string out = "before ";
  append_json_text(text, out);
  return out;
}

std::string dumped(const std::string& text) { return "before " + dump(Json(text)); }

TEST(JsonText, writes_each_byte_as_a_tree_does) {
  EXPECT_EQ(written(""), "before \"\"");
  for (int byte = 0; byte < 256; ++byte) {
    const std::string alone(1, static_cast<char>(byte));
    EXPECT_EQ(written(alone), dumped(alone)) << byte;
    EXPECT_EQ(written("a" + alone + "b"), dumped("a" + alone + "b")) << byte;
  }
}

TEST(JsonText, writes_whole_and_broken_characters_as_a_tree_does) {
  for (const std::string text :
       {"caf\u00e9", "\u65e5\u672c\u8a9e", "\U0001F600!", "\ufeff", "line\nbreak\t\"quoted\" \\",
        "\xe6\x97", "\xe6\x97 x", "\xf0\x9f\x98", "\xed\xa0\x80", "\xc0\xaf", "\xf4\x90\x80\x80"}) {
    EXPECT_EQ(written(text), dumped(text)) << text;
  }
}

TEST(JsonText, writes_any_bytes_as_a_tree_does) {
  Random random(1);
  // Bytes that begin and continue characters are more likely than by chance.
  constexpr std::string_view kLikely = "\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80\xed\x80\xf4\x8f\"\\\n";
  for (int round = 0; round < 20'000; ++round) {
    std::string text(random.next_below(12), '\0');
    for (char& c : text) {
      c = random.next_below(2) == 0 ? static_cast<char>(random.next_below(256))
                                    : kLikely[random.next_below(kLikely.size())];
    }
    ASSERT_EQ(written(text), dumped(text)) << "round " << round;
  }
}

}  // namespace
}  // namespace gauntlet::server::inline openai
