#include "core/toml.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <optional>

namespace gauntlet {
namespace {

struct TomlFault {
  std::string why;
  int line = 0;
};

bool is_bare_key_character(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
         c == '_';
}

void append_utf8(std::string& out, std::uint32_t point) {
  const auto byte = [&](std::uint32_t value) { out += static_cast<char>(value); };
  if (point < 0x80) return byte(point);
  if (point < 0x800) {
    byte(0xC0 | point >> 6);
  } else if (point < 0x10000) {
    byte(0xE0 | point >> 12);
    byte(0x80 | (point >> 6 & 0x3F));
  } else {
    byte(0xF0 | point >> 18);
    byte(0x80 | (point >> 12 & 0x3F));
    byte(0x80 | (point >> 6 & 0x3F));
  }
  byte(0x80 | (point & 0x3F));
}

class TomlParser {
 public:
  explicit TomlParser(std::string_view text) : text_(text) {}

  std::vector<TomlItem> items() {
    std::vector<TomlItem> found;
    for (skip_blank_lines(); !at_end(); skip_blank_lines()) {
      TomlItem item = key_and_value();
      if (std::ranges::find(found, item.key, &TomlItem::key) != found.end()) {
        fail("'" + item.key + "' is given twice");
      }
      found.push_back(std::move(item));
    }
    return found;
  }

 private:
  [[noreturn]] void fail(std::string why) const { throw TomlFault{std::move(why), line_}; }
  bool at_end() const { return at_ == text_.size(); }
  char here() const { return at_end() ? '\0' : text_[at_]; }
  bool take(char c) {
    if (at_end() || here() != c) return false;
    ++at_;
    if (c == '\n') ++line_;
    return true;
  }
  void skip_blanks() {
    while (here() == ' ' || here() == '\t' || here() == '\r') ++at_;
  }
  void skip_comment() {
    if (here() != '#') return;
    while (!at_end() && here() != '\n') ++at_;
  }
  void skip_blank_lines() {
    do {
      skip_blanks();
      skip_comment();
    } while (take('\n'));
  }

  TomlItem key_and_value() {
    TomlItem item{.line = line_};
    if (here() == '[') fail("tables ([...]) have no meaning here; write 'key = value'");
    if (here() == '"' || here() == '\'') {
      item.key = quoted();
    } else {
      while (is_bare_key_character(here())) item.key += text_[at_++];
    }
    skip_blanks();
    if (item.key.empty() || !take('=')) fail("expected 'key = value'");
    skip_blanks();
    if (here() == '[') {
      item.type = TomlType::list;
      list(item);
    } else {
      value(item);
      item.type = item.value_types.back();
    }
    skip_blanks();
    skip_comment();
    if (!at_end() && !take('\n')) fail("'" + item.key + "' has something behind its value");
    return item;
  }

  void list(TomlItem& item) {
    take('[');
    for (skip_blank_lines(); !take(']'); skip_blank_lines()) {
      value(item);
      skip_blank_lines();
      if (!take(',') && here() != ']')
        fail("the list of '" + item.key + "' lacks a ',' or its ']'");
    }
  }

  void value(TomlItem& item) {
    if (here() == '"' || here() == '\'') {
      item.values.push_back(quoted());
      item.value_types.push_back(TomlType::string);
      return;
    }
    std::string word;
    while (!at_end() && (is_bare_key_character(here()) || here() == '+' || here() == '.')) {
      if (here() != '_') word += here();
      ++at_;
    }
    item.value_types.push_back(type_of(word, item.key));
    item.values.push_back(word.starts_with("+") ? word.substr(1) : word);
  }

  TomlType type_of(const std::string& word, const std::string& key) const {
    if (word == "true" || word == "false") return TomlType::boolean;
    const std::string_view digits = std::string_view(word).substr(word.starts_with("+") ? 1 : 0);
    const char* end = digits.data() + digits.size();
    std::int64_t whole = 0;
    if (!digits.empty() && std::from_chars(digits.data(), end, whole).ptr == end) {
      return TomlType::integer;
    }
    double number = 0;
    if (!digits.empty() && std::from_chars(digits.data(), end, number).ptr == end) {
      return TomlType::number;
    }
    fail("the value of '" + key + "' is no string in quotes, no number, and not true or false");
  }

  std::string quoted() {
    const char quote = here();
    ++at_;
    std::string out;
    while (!take(quote)) {
      if (at_end() || here() == '\n') fail("a string lacks its closing quote");
      if (quote == '"' && here() == '\\') {
        ++at_;
        escaped(out);
      } else {
        out += text_[at_++];
      }
    }
    return out;
  }

  void escaped(std::string& out) {
    const char c = here();
    ++at_;
    switch (c) {
      case 'b':
        out += '\b';
        return;
      case 't':
        out += '\t';
        return;
      case 'n':
        out += '\n';
        return;
      case 'f':
        out += '\f';
        return;
      case 'r':
        out += '\r';
        return;
      case '"':
        out += '"';
        return;
      case '\\':
        out += '\\';
        return;
      case 'u':
        return code_point(out, 4);
      case 'U':
        return code_point(out, 8);
      default:
        fail("a string has an escape that TOML does not know");
    }
  }

  void code_point(std::string& out, std::size_t digits) {
    const std::string_view hex = text_.substr(std::min(at_, text_.size()), digits);
    std::uint32_t point = 0;
    const auto read = std::from_chars(hex.data(), hex.data() + hex.size(), point, 16);
    if (hex.size() != digits || read.ptr != hex.data() + digits || point > 0x10FFFF ||
        (point >= 0xD800 && point < 0xE000)) {
      fail("a string has an escape that is no character");
    }
    at_ += digits;
    append_utf8(out, point);
  }

  std::string_view text_;
  std::size_t at_ = 0;
  int line_ = 1;
};

}  // namespace

const char* name_of(TomlType type) {
  switch (type) {
    case TomlType::string:
      return "a string";
    case TomlType::integer:
      return "a whole number";
    case TomlType::number:
      return "a number";
    case TomlType::boolean:
      return "true or false";
    case TomlType::list:
      return "a list";
  }
  return "";
}

Expected<std::vector<TomlItem>> parse_toml(std::string_view text, const std::string& where) {
  try {
    return TomlParser(text).items();
  } catch (const TomlFault& fault) {
    return Error{fmt::format("{}:{}: {}", where, fault.line, fault.why), ErrorKind::wrong_use};
  }
}

std::string toml_quoted(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (static_cast<unsigned char>(c) < 0x20 || c == 0x7F) {
      out += fmt::format("\\u{:04X}", static_cast<unsigned>(c));
    } else {
      out += c;
    }
  }
  return out + '"';
}

}  // namespace gauntlet
