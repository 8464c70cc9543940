#include "model/tokens/o200k_split.h"

#include <array>

#include "core/check.h"
#include "model/tokens/unicode_classes.h"
#include "model/tokens/utf8.h"

namespace gauntlet::model::inline tokens {
namespace {

struct Char {
  CharClass is;
  std::uint32_t size;
};

constexpr std::array<CharClass, 128> kAscii = [] {
  std::array<CharClass, 128> table{};
  for (unsigned c = 0; c < table.size(); ++c) {
    table[c] = c >= 'A' && c <= 'Z'                   ? CharClass::upper
               : c >= 'a' && c <= 'z'                 ? CharClass::lower
               : c >= '0' && c <= '9'                 ? CharClass::number
               : c == '\r' || c == '\n'               ? CharClass::newline
               : c == ' ' || (c >= '\t' && c <= '\r') ? CharClass::space
                                                      : CharClass::other;
  }
  return table;
}();

inline Char char_at(const char* at, const char* end) {
  const auto byte = static_cast<unsigned char>(*at);
  if (byte < 0x80) return {kAscii[byte], 1};
  const Utf8Char next = next_utf8(at, end);
  return {char_class(next.point), next.size};
}

constexpr unsigned bit(CharClass c) { return 1u << static_cast<unsigned>(c); }
constexpr unsigned kUpper = bit(CharClass::upper);
constexpr unsigned kEitherCase = bit(CharClass::letter) | bit(CharClass::mark);
constexpr unsigned kLowerOrEither = bit(CharClass::lower) | kEitherCase;
constexpr unsigned kSpaces = bit(CharClass::space) | bit(CharClass::newline);
constexpr unsigned kSymbols = bit(CharClass::other) | bit(CharClass::mark);

/// Past the characters of the given classes.
const char* skip(const char* at, const char* end, unsigned classes) {
  while (at != end) {
    const Char c = char_at(at, end);
    if (!(bit(c.is) & classes)) break;
    at += c.size;
  }
  return at;
}

/// The two letter patterns, without prefix and suffix, from one place: [upper]*[lower]+ and, where
/// that fails, [upper]+, in which "upper" and "lower" both take what has either case. Null: no
/// match.
struct Word {
  const char* lower_end = nullptr;
  const char* upper_end = nullptr;
};

Word match_word(const char* begin, const char* end) {
  const char* at = begin;
  const char* after_either = nullptr;
  while (at != end) {
    const Char c = char_at(at, end);
    if (!(bit(c.is) & (kUpper | kEitherCase))) {
      if (c.is == CharClass::lower) return {.lower_end = skip(at + c.size, end, kLowerOrEither)};
      break;
    }
    at += c.size;
    if (c.is != CharClass::upper) after_either = at;
  }
  // No lower case follows, so the run gives back characters until one can stand as lower.
  if (after_either) return {.lower_end = after_either};
  return {.upper_end = at == begin ? nullptr : at};
}

/// Past 's, 't, 're, 've, 'm, 'll or 'd in any case, if one is here. Long s (U+017F) folds to s.
const char* skip_contraction(const char* at, const char* end) {
  if (end - at < 2 || *at != '\'') return at;
  const auto lower = [at](int i) { return static_cast<char>(at[i] | 0x20); };
  switch (lower(1)) {
    case 's':
    case 't':
    case 'm':
    case 'd':
      return at + 2;
    case 'r':
    case 'v':
      return end - at > 2 && lower(2) == 'e' ? at + 3 : at;
    case 'l':
      return end - at > 2 && lower(2) == 'l' ? at + 3 : at;
    default:
      return end - at > 2 && at[1] == '\xC5' && at[2] == '\xBF' ? at + 3 : at;
  }
}

const char* match_numbers(const char* at, const char* end) {
  for (int taken = 0; taken < 3 && at != end; ++taken) {
    const Char c = char_at(at, end);
    if (c.is != CharClass::number) break;
    at += c.size;
  }
  return at;
}

/// A run of white space up to its last line end; without one, all of it at the end of the text and
/// otherwise all but its last character, which belongs to what follows.
const char* match_spaces(const char* begin, const char* end) {
  const char* at = begin;
  const char* last = begin;
  const char* after_newline = nullptr;
  while (at != end) {
    const Char c = char_at(at, end);
    if (!(bit(c.is) & kSpaces)) break;
    last = at;
    at += c.size;
    if (c.is == CharClass::newline) after_newline = at;
  }
  if (after_newline) return after_newline;
  return at == end || last == begin ? at : last;
}

const char* match(const char* begin, const char* end) {
  const Char first = char_at(begin, end);
  switch (first.is) {
    case CharClass::upper:
    case CharClass::lower:
    case CharClass::letter: {
      const Word word = match_word(begin, end);
      return skip_contraction(word.lower_end ? word.lower_end : word.upper_end, end);
    }
    case CharClass::number:
      return match_numbers(begin, end);
    case CharClass::newline:
      return match_spaces(begin, end);
    case CharClass::mark:
    case CharClass::space:
    case CharClass::other:
      break;
  }
  // Any of these may stand before a word and belong to it.
  const Word word = match_word(begin + first.size, end);
  if (word.lower_end) return skip_contraction(word.lower_end, end);
  if (first.is == CharClass::mark) {
    return skip_contraction(match_word(begin, end).lower_end, end);
  }
  if (word.upper_end) return skip_contraction(word.upper_end, end);
  const char* const symbols = *begin == ' ' ? begin + 1 : begin;
  const char* at = skip(symbols, end, kSymbols);
  if (at == symbols) return match_spaces(begin, end);
  while (at != end && (*at == '\r' || *at == '\n' || *at == '/')) ++at;
  return at;
}

}  // namespace

std::size_t first_piece_size(std::string_view text) {
  check(!text.empty(), "an empty text has no piece");
  return static_cast<std::size_t>(match(text.data(), text.data() + text.size()) - text.data());
}

}  // namespace gauntlet::model::inline tokens
