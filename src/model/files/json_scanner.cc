#include "model/files/json_scanner.h"

#include <fmt/format.h>

#include <charconv>

#include "model/tokens/utf8.h"

namespace gauntlet::model::inline files {
namespace {

constexpr int kMaxScanDepth = 64;

}  // namespace

bool JsonScanner::fail(std::string_view what) {
  if (ok()) error_ = fmt::format("{} at byte {}", what, at_);
  return false;
}

bool JsonScanner::take(char wanted) {
  if (peek() != wanted || at_ == text_.size()) return fail(fmt::format("'{}' is missing", wanted));
  ++at_;
  return true;
}

bool JsonScanner::take_comma(char closing) {
  if (peek() == closing) {
    ++at_;
    return false;
  }
  return take(',');
}

bool JsonScanner::string(std::string& out) {
  out.clear();
  if (!take('"')) return false;
  while (true) {
    const std::size_t begin = at_;
    while (at_ < text_.size() && text_[at_] != '"' && text_[at_] != '\\' &&
           static_cast<unsigned char>(text_[at_]) >= 0x20) {
      ++at_;
    }
    out.append(text_, begin, at_ - begin);
    if (at_ == text_.size()) return fail("a string does not end");
    if (text_[at_] == '"') break;
    if (text_[at_] != '\\') return fail("a string holds a control character");
    if (!escape(out)) return false;
  }
  ++at_;
  return true;
}

bool JsonScanner::escape(std::string& out) {
  constexpr std::string_view kNames = "\"\\/bfnrt";
  constexpr std::string_view kMeanings = "\"\\/\b\f\n\r\t";
  ++at_;
  if (at_ == text_.size()) return fail("a string does not end");
  const char name = text_[at_++];
  if (const auto which = kNames.find(name); which != std::string_view::npos) {
    out += kMeanings[which];
    return true;
  }
  char32_t unit = 0;
  if (name != 'u' || !hex4(unit)) return fail("a string holds an unknown escape");
  if (unit >= 0xD800 && unit < 0xDC00 && text_.substr(at_, 2) == "\\u") {
    char32_t low = 0;
    at_ += 2;
    if (!hex4(low)) return fail("a string holds an unknown escape");
    if (low < 0xDC00 || low > 0xDFFF) return fail("a string holds half a surrogate pair");
    unit = 0x10000 + ((unit - 0xD800) << 10) + (low - 0xDC00);
  }
  if (unit >= 0xD800 && unit <= 0xDFFF) return fail("a string holds half a surrogate pair");
  append_utf8(unit, out);
  return true;
}

bool JsonScanner::hex4(char32_t& unit) {
  const std::string_view digits = text_.substr(at_, 4);
  std::uint32_t value = 0;
  const auto [end, wrong] =
      std::from_chars(digits.data(), digits.data() + digits.size(), value, 16);
  if (wrong != std::errc() || digits.size() != 4 || end != digits.data() + 4) return false;
  at_ += 4;
  unit = value;
  return true;
}

bool JsonScanner::integer(std::int64_t& out) {
  peek();
  const char* const begin = text_.data() + at_;
  const char* const last = text_.data() + text_.size();
  const auto [end, wrong] = std::from_chars(begin, last, out);
  if (wrong != std::errc()) return fail("a whole number is missing");
  if (end != last && (*end == '.' || *end == 'e' || *end == 'E')) {
    return fail("a number is not whole");
  }
  at_ += static_cast<std::size_t>(end - begin);
  return true;
}

bool JsonScanner::skip(std::string_view& raw) {
  peek();
  const std::size_t begin = at_;
  std::string ignored;
  std::string open;  // the closing brackets still to come
  do {
    const char c = peek();
    if (c == '\0') return fail("a value is missing");
    if (c == '"') {
      if (!string(ignored)) return false;
    } else if (c == '{' || c == '[') {
      if (open.size() == kMaxScanDepth) return fail("values are nested too deeply");
      open += c == '{' ? '}' : ']';
      ++at_;
    } else if (!open.empty() && c == open.back()) {
      open.pop_back();
      ++at_;
    } else if (c == '}' || c == ']' || (open.empty() && (c == ',' || c == ':'))) {
      return fail("a value is missing");
    } else if (c == ',' || c == ':') {
      ++at_;
    } else {
      while (at_ < text_.size() && !is_space(text_[at_]) &&
             std::string_view(",:[]{}\"").find(text_[at_]) == std::string_view::npos) {
        ++at_;
      }
    }
  } while (!open.empty());
  raw = text_.substr(begin, at_ - begin);
  return true;
}

bool JsonScanner::end() {
  peek();
  return at_ == text_.size() || fail("something follows the end");
}

}  // namespace gauntlet::model::inline files
