// UTF-8 as bytes that may be wrong: one character at a time, and a stream of which only whole
// characters come out.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

namespace gauntlet::model::inline tokens {

inline constexpr char32_t kReplacementChar = 0xFFFD;

enum class Utf8State : std::uint8_t { valid, invalid, cut_short };

/// The first character of some bytes. Bytes that are no character come as U+FFFD, as many at a time
/// as could have begun one (what WHATWG and Rust's from_utf8_lossy replace by one U+FFFD).
struct Utf8Char {
  char32_t point = kReplacementChar;
  std::uint32_t size = 1;  // in bytes
  Utf8State state = Utf8State::invalid;
};

/// `at` must be before `end`. cut_short: what follows `end` could complete the character.
inline Utf8Char next_utf8(const char* at, const char* end) {
  const auto byte = [at](std::uint32_t i) { return static_cast<unsigned char>(at[i]); };
  const unsigned first = byte(0);
  if (first < 0x80) return {.point = first, .size = 1, .state = Utf8State::valid};
  if (first < 0xC2 || first > 0xF4) return {};
  const std::uint32_t size = first < 0xE0 ? 2 : first < 0xF0 ? 3 : 4;
  // Only the second byte's range depends on the first: no overlong forms, no surrogates, no more
  // than U+10FFFF.
  unsigned low = first == 0xE0 ? 0xA0 : first == 0xF0 ? 0x90 : 0x80;
  unsigned high = first == 0xED ? 0x9F : first == 0xF4 ? 0x8F : 0xBF;
  char32_t point = first & (0x7Fu >> size);
  for (std::uint32_t i = 1; i < size; ++i) {
    if (at + i == end) return {.size = i, .state = Utf8State::cut_short};
    if (byte(i) < low || byte(i) > high) return {.size = i};
    point = point << 6 | (byte(i) & 0x3F);
    low = 0x80;
    high = 0xBF;
  }
  return {.point = point, .size = size, .state = Utf8State::valid};
}

void append_utf8(char32_t point, std::string& out);

/// Makes valid UTF-8 of bytes that arrive in pieces, such as those of tokens: a character that is
/// split over pieces is held back until it is whole, and what can become none is U+FFFD.
class Utf8Holder {
 public:
  /// The text that is whole now.
  std::string push(std::string_view bytes);
  /// What is still held when nothing follows: nothing or one U+FFFD.
  std::string finish();
  std::string_view held() const { return held_; }

 private:
  std::string held_;  // at most three bytes
};

}  // namespace gauntlet::model::inline tokens
