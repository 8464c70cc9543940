// Reads JSON front to back without building a tree, for files whose millions of small values would
// cost more as objects than as text. The input is untrusted: nothing recurses, all is bounded.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

namespace gauntlet::model::inline files {

/// Every function returns false once something is wrong; error() then says what, and where.
class JsonScanner {
 public:
  explicit JsonScanner(std::string_view text) : text_(text) {}

  /// Calls member(key) for each member of an object; it must read the value and say whether it
  /// could.
  template <class Member>
  bool object(Member&& member) {
    if (!take('{')) return false;
    if (peek() == '}') return take('}');
    std::string key;
    do {
      if (!string(key) || !take(':') || !member(std::string_view(key))) return false;
    } while (take_comma('}'));
    return ok();
  }

  /// Calls element() for each element of an array, likewise.
  template <class Element>
  bool array(Element&& element) {
    if (!take('[')) return false;
    if (peek() == ']') return take(']');
    do {
      if (!element()) return false;
    } while (take_comma(']'));
    return ok();
  }

  /// The next character that is no white space; 0 at the end. Reads nothing.
  char peek() {
    while (at_ < text_.size() && is_space(text_[at_])) ++at_;
    return at_ < text_.size() ? text_[at_] : '\0';
  }
  bool string(std::string& out);
  bool integer(std::int64_t& out);
  /// Passes over one value and gives its text, which is balanced but may still be wrong inside.
  bool skip(std::string_view& raw);
  /// Nothing but white space is left.
  bool end();

  bool fail(std::string_view what);
  bool ok() const { return error_.empty(); }
  const std::string& error() const { return error_; }
  std::size_t position() const { return at_; }
  void rewind(std::size_t position) { at_ = position; }

 private:
  static bool is_space(char c) { return c == ' ' || c == '\n' || c == '\r' || c == '\t'; }
  bool take(char wanted);
  /// True after a comma, false after the closing bracket or anything else, which is an error.
  bool take_comma(char closing);
  bool escape(std::string& out);
  bool hex4(char32_t& unit);

  std::string_view text_;
  std::size_t at_ = 0;
  std::string error_;
};

}  // namespace gauntlet::model::inline files
