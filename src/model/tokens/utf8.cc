#include "model/tokens/utf8.h"

namespace gauntlet::model::inline tokens {

void append_utf8(char32_t point, std::string& out) {
  const auto put = [&out](char32_t byte) { out += static_cast<char>(byte); };
  if (point < 0x80) {
    put(point);
  } else if (point < 0x800) {
    put(0xC0 | point >> 6);
    put(0x80 | (point & 0x3F));
  } else if (point < 0x10000) {
    put(0xE0 | point >> 12);
    put(0x80 | (point >> 6 & 0x3F));
    put(0x80 | (point & 0x3F));
  } else {
    put(0xF0 | point >> 18);
    put(0x80 | (point >> 12 & 0x3F));
    put(0x80 | (point >> 6 & 0x3F));
    put(0x80 | (point & 0x3F));
  }
}

std::string Utf8Holder::push(std::string_view bytes) {
  std::string joined;
  if (!held_.empty()) {
    joined = held_;
    joined += bytes;
    bytes = joined;
    held_.clear();
  }
  std::string whole;
  whole.reserve(bytes.size());
  const char* const end = bytes.data() + bytes.size();
  for (const char* at = bytes.data(); at != end;) {
    const Utf8Char next = next_utf8(at, end);
    if (next.state == Utf8State::cut_short) {
      held_.assign(at, end);
      break;
    }
    if (next.state == Utf8State::valid) {
      whole.append(at, next.size);
    } else {
      append_utf8(kReplacementChar, whole);
    }
    at += next.size;
  }
  return whole;
}

std::string Utf8Holder::finish() {
  std::string rest;
  if (!held_.empty()) append_utf8(kReplacementChar, rest);
  held_.clear();
  return rest;
}

}  // namespace gauntlet::model::inline tokens
