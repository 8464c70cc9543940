#include "model/tokens/utf8.h"

#include <gtest/gtest.h>

#include "core/random.h"

namespace gauntlet::model::inline tokens {
namespace {

std::string lossy(std::string_view bytes) {
  Utf8Holder holder;
  std::string text = holder.push(bytes);
  return text + holder.finish();
}

TEST(Utf8, gives_every_code_point_back) {
  for (char32_t point = 0; point < 0x110000; ++point) {
    if (point >= 0xD800 && point < 0xE000) continue;
    std::string bytes;
    append_utf8(point, bytes);
    const Utf8Char next = next_utf8(bytes.data(), bytes.data() + bytes.size());
    ASSERT_EQ(next.state, Utf8State::valid) << std::hex << static_cast<unsigned>(point);
    ASSERT_EQ(next.point, point);
    ASSERT_EQ(next.size, bytes.size());
  }
}

TEST(Utf8, replaces_as_much_as_could_have_begun_a_character) {
  EXPECT_EQ(lossy("\xE2\x82"), "\uFFFD");
  EXPECT_EQ(lossy("\xE2\x82("), "\uFFFD(");
  EXPECT_EQ(lossy("\xF0\x9F\x98!"), "\uFFFD!");
  EXPECT_EQ(lossy("\xC0\x80"), "\uFFFD\uFFFD");            // overlong
  EXPECT_EQ(lossy("\xED\xA0\x80"), "\uFFFD\uFFFD\uFFFD");  // surrogate
  EXPECT_EQ(lossy("\xF4\x90\x80\x80"), "\uFFFD\uFFFD\uFFFD\uFFFD");
  EXPECT_EQ(lossy("\xE2\xE2\x82\xAC"), "\uFFFD\u20AC");
}

TEST(Utf8Holder, holds_a_split_character_back_until_it_is_whole) {
  Utf8Holder holder;
  EXPECT_EQ(holder.push("a\xF0\x9F"), "a");
  EXPECT_EQ(holder.held(), "\xF0\x9F");
  EXPECT_EQ(holder.push(""), "");
  EXPECT_EQ(holder.push("\x98"), "");
  EXPECT_EQ(holder.push("\x80z"), "\U0001F600z");
  EXPECT_EQ(holder.finish(), "");
  EXPECT_EQ(holder.push("\xC3"), "");
  EXPECT_EQ(holder.finish(), "\uFFFD");
  EXPECT_EQ(holder.finish(), "");
}

TEST(Utf8Holder, gives_the_same_however_the_bytes_are_cut) {
  Random random(7);
  for (int round = 0; round < 2000; ++round) {
    std::string bytes;
    while (bytes.size() < 24) {
      if (random.next_below(2) == 0) {
        append_utf8(static_cast<char32_t>(random.next_below(0xD800)), bytes);
      } else {
        bytes += static_cast<char>(128 + random.next_below(128));
      }
    }
    Utf8Holder holder;
    std::string pieces;
    for (std::size_t at = 0; at < bytes.size();) {
      const std::size_t size = random.next_below(4);
      pieces += holder.push(std::string_view(bytes).substr(at, size));
      EXPECT_LE(holder.held().size(), 3u);
      at += size;
    }
    EXPECT_EQ(pieces + holder.finish(), lossy(bytes));
  }
}

}  // namespace
}  // namespace gauntlet::model::inline tokens
