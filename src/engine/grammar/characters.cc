#include "engine/grammar/characters.h"

#include <algorithm>
#include <array>
#include <span>
#include <string>

namespace gauntlet::engine::grammar {
namespace {

constexpr char32_t kLast = 0x10FFFF;

std::array<std::uint8_t, 4> utf8(char32_t point, int size) {
  std::array<std::uint8_t, 4> bytes{};
  for (int i = size - 1; i > 0; --i) {
    bytes[i] = static_cast<std::uint8_t>(0x80 | (point & 0x3F));
    point >>= 6;
  }
  constexpr std::array<unsigned, 5> kLead = {0, 0, 0xC0, 0xE0, 0xF0};
  bytes[0] = static_cast<std::uint8_t>(kLead[size] | point);
  return bytes;
}

/// The characters of a range that all take `size` bytes: split until each byte's range is free of
/// the others'.
void utf8_range(Nfa& nfa, Nfa::State from, Nfa::State to, CodeRange range, int size) {
  for (int tail = 1; tail < size; ++tail) {
    const char32_t mask = (char32_t{1} << (6 * tail)) - 1;
    if ((range.low & ~mask) == (range.high & ~mask)) continue;
    if ((range.low & mask) != 0) {
      utf8_range(nfa, from, to, {.low = range.low, .high = range.low | mask}, size);
      utf8_range(nfa, from, to, {.low = (range.low | mask) + 1, .high = range.high}, size);
      return;
    }
    if ((range.high & mask) != mask) {
      utf8_range(nfa, from, to, {.low = range.low, .high = (range.high & ~mask) - 1}, size);
      utf8_range(nfa, from, to, {.low = range.high & ~mask, .high = range.high}, size);
      return;
    }
  }
  const auto low = utf8(range.low, size), high = utf8(range.high, size);
  for (int i = 0; i < size; ++i) {
    const Nfa::State next = i + 1 == size ? to : nfa.add();
    nfa.bytes(from, next, low[i], high[i]);
    from = next;
  }
}

std::string escape_of(char32_t point) {
  switch (point) {
    case '"':
      return "\\\"";
    case '\\':
      return "\\\\";
    case '\b':
      return "\\b";
    case '\f':
      return "\\f";
    case '\n':
      return "\\n";
    case '\r':
      return "\\r";
    case '\t':
      return "\\t";
    default:
      break;
  }
  constexpr std::string_view kHex = "0123456789abcdef";
  return std::string("\\u00") + kHex[point >> 4 & 15] + kHex[point & 15];
}

struct Plain {
  CodeRange range;
  int size;  // bytes
};
constexpr std::array<Plain, 7> kPlainInJson = {{{{0x20, 0x21}, 1},
                                                {{0x23, 0x5B}, 1},
                                                {{0x5D, 0x7F}, 1},
                                                {{0x80, 0x7FF}, 2},
                                                {{0x800, 0xD7FF}, 3},
                                                {{0xE000, 0xFFFF}, 3},
                                                {{0x10000, kLast}, 4}}};

/// The characters of a range that are among the plain ones.
void plain_characters(Nfa& nfa, Nfa::State from, Nfa::State to, const CodeRange& range,
                      std::span<const Plain> among) {
  for (const Plain& plain : among) {
    const CodeRange common{.low = std::max(range.low, plain.range.low),
                           .high = std::min(range.high, plain.range.high)};
    if (common.low <= common.high) utf8_range(nfa, from, to, common, plain.size);
  }
}

bool must_escape(char32_t point) { return point < 0x20 || point == '"' || point == '\\'; }

void hex_digit(Nfa& nfa, Nfa::State from, Nfa::State to) {
  nfa.bytes(from, to, '0', '9');
  nfa.bytes(from, to, 'a', 'f');
  nfa.bytes(from, to, 'A', 'F');
}

void hex_digits(Nfa& nfa, Nfa::State from, Nfa::State to, int count) {
  nfa.repeat(from, to, {.min = count, .max = count},
             [&](Nfa::State a, Nfa::State b) { hex_digit(nfa, a, b); });
}

}  // namespace

CodeSet normalized(CodeSet set) {
  std::sort(set.begin(), set.end(),
            [](const CodeRange& a, const CodeRange& b) { return a.low < b.low; });
  CodeSet merged;
  for (const CodeRange& range : set) {
    if (range.low > range.high) continue;
    if (!merged.empty() && range.low <= merged.back().high + 1)
      merged.back().high = std::max(merged.back().high, range.high);
    else
      merged.push_back(range);
  }
  CodeSet kept;
  for (const CodeRange& range : merged) {
    if (range.low < 0xD800)
      kept.push_back({.low = range.low, .high = std::min<char32_t>(range.high, 0xD7FF)});
    if (range.high > 0xDFFF)
      kept.push_back(
          {.low = std::max<char32_t>(range.low, 0xE000), .high = std::min(range.high, kLast)});
  }
  return kept;
}

CodeSet complement(const CodeSet& set) {
  CodeSet rest;
  char32_t next = 0;
  for (const CodeRange& range : normalized(set)) {
    if (range.low > next) rest.push_back({.low = next, .high = range.low - 1});
    next = range.high + 1;
  }
  if (next <= kLast) rest.push_back({.low = next, .high = kLast});
  return normalized(rest);
}

CodeSet all_characters() { return complement({}); }

void canonical_character(Nfa& nfa, Nfa::State from, Nfa::State to, const CodeSet& set) {
  for (const CodeRange& range : set) {
    for (char32_t point = range.low; point <= std::min<char32_t>(range.high, '\\'); ++point)
      if (must_escape(point)) nfa.text(from, to, escape_of(point));
    plain_characters(nfa, from, to, range, kPlainInJson);
  }
}

void raw_character(Nfa& nfa, Nfa::State from, Nfa::State to, const CodeSet& set) {
  constexpr std::array<Plain, 1> kAscii = {{{{0, 0x7F}, 1}}};
  for (const CodeRange& range : set) {
    plain_characters(nfa, from, to, range, kAscii);
    plain_characters(nfa, from, to, range, std::span(kPlainInJson).subspan(3));
  }
}

void any_character(Nfa& nfa, Nfa::State from, Nfa::State to) {
  canonical_character(nfa, from, to, all_characters());
  const Nfa::State escape = nfa.add(), unicode = nfa.add();
  nfa.bytes(from, escape, '\\', '\\');
  for (const char letter : std::string_view("\"\\/bfnrt"))
    nfa.text(escape, to, std::string_view(&letter, 1));
  nfa.text(escape, unicode, "u");

  const Nfa::State other = nfa.add(), surrogate = nfa.add(), low_surrogate = nfa.add();
  for (const auto& [low, high] :
       {std::pair{'0', '9'}, {'a', 'c'}, {'A', 'C'}, {'e', 'f'}, {'E', 'F'}})
    nfa.bytes(unicode, other, static_cast<std::uint8_t>(low), static_cast<std::uint8_t>(high));
  hex_digits(nfa, other, to, 3);
  for (const char letter : {'d', 'D'}) nfa.text(unicode, surrogate, std::string_view(&letter, 1));
  const Nfa::State below = nfa.add(), high_half = nfa.add(), paired = nfa.add(), half = nfa.add();
  nfa.bytes(surrogate, below, '0', '7');
  hex_digits(nfa, below, to, 2);
  for (const auto& [low, high] : {std::pair{'8', '9'}, {'a', 'b'}, {'A', 'B'}})
    nfa.bytes(surrogate, high_half, static_cast<std::uint8_t>(low),
              static_cast<std::uint8_t>(high));
  hex_digits(nfa, high_half, paired, 2);
  nfa.text(paired, half, "\\u");
  for (const char letter : {'d', 'D'}) nfa.text(half, low_surrogate, std::string_view(&letter, 1));
  const Nfa::State last = nfa.add();
  nfa.bytes(low_surrogate, last, 'c', 'f');
  nfa.bytes(low_surrogate, last, 'C', 'F');
  hex_digits(nfa, last, to, 2);
}

}  // namespace gauntlet::engine::grammar
