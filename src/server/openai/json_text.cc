#include "server/openai/json_text.h"

#include <array>

#include "model/tokens/utf8.h"

namespace gauntlet::server::inline openai {
namespace {

constexpr std::string_view kHexDigits = "0123456789abcdef";
/// What follows the backslash, for the control characters that have a letter; else 0.
constexpr std::array<char, 32> kLetters = [] {
  std::array<char, 32> letters{};
  letters['\b'] = 'b';
  letters['\t'] = 't';
  letters['\n'] = 'n';
  letters['\f'] = 'f';
  letters['\r'] = 'r';
  return letters;
}();

void append_escaped(unsigned char c, std::string& out) {
  out += '\\';
  if (c >= kLetters.size()) {
    out += static_cast<char>(c);
  } else if (kLetters[c] != 0) {
    out += kLetters[c];
  } else {
    out += "u00";
    out += kHexDigits[c >> 4];
    out += kHexDigits[c & 15];
  }
}

}  // namespace

void append_json_text(std::string_view text, std::string& out) {
  out += '"';
  const char* at = text.data();
  const char* const end = at + text.size();
  const char* unwritten = at;
  while (at != end) {
    const auto c = static_cast<unsigned char>(*at);
    if (c >= 0x80) {
      const model::Utf8Char next = model::next_utf8(at, end);
      if (next.state != model::Utf8State::valid) {
        out.append(unwritten, at);
        model::append_utf8(model::kReplacementChar, out);
        unwritten = at + next.size;
      }
      at += next.size;
      continue;
    }
    if (c < 0x20 || c == '"' || c == '\\') {
      out.append(unwritten, at);
      append_escaped(c, out);
      unwritten = at + 1;
    }
    ++at;
  }
  out.append(unwritten, end);
  out += '"';
}

}  // namespace gauntlet::server::inline openai
