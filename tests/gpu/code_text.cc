#include "tests/gpu/code_text.h"

#include <openssl/sha.h>

#include <algorithm>
#include <array>
#include <cctype>

#include "core/text/text.h"

namespace gauntlet::tests::gpu {
namespace {

bool is_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; }

/// Copies a source from one end to the other and leaves out what does not count.
class CppReader {
 public:
  explicit CppReader(std::string_view text) : text_(text) {}

  std::string code() {
    while (at_ < text_.size()) {
      const std::string_view rest = text_.substr(at_);
      if (rest.starts_with("//")) {
        line_comment();
      } else if (rest.starts_with("/*")) {
        at_ = std::min(text_.find("*/", at_ + 2), text_.size() - 2) + 2;
        blank();
      } else if (rest[0] == '"' && after_raw_prefix()) {
        raw_literal();
      } else if (rest[0] == '"' || (rest[0] == '\'' && !inside_number())) {
        literal(rest[0]);
      } else if (rest[0] == '\n') {
        ++at_;
        end_line();
      } else if (std::isspace(static_cast<unsigned char>(rest[0]))) {
        ++at_;
        blank();
      } else {
        code_ += rest[0];
        ++at_;
      }
    }
    end_line();
    return std::move(code_);
  }

 private:
  bool at_line_start() const { return code_.empty() || code_.back() == '\n'; }
  void blank() {
    if (!at_line_start() && code_.back() != ' ') code_ += ' ';
  }
  void end_line() {
    if (code_.ends_with(' ')) code_.pop_back();
    if (!at_line_start()) code_ += '\n';
  }
  void line_comment() {
    const std::size_t begin = at_;
    do {
      at_ = std::min(text_.find('\n', at_ + 1), text_.size());
    } while (at_ < text_.size() && text_[at_ - 1] == '\\');
    const std::string_view comment = text_.substr(begin, at_ - begin);
    if (at_line_start() && comment.starts_with("// subject:")) code_ += comment;
  }
  /// The word that ends where the reader is.
  std::string_view word_before() const {
    std::size_t begin = code_.size();
    while (begin > 0 && (is_word(code_[begin - 1]) || code_[begin - 1] == '\'')) --begin;
    return std::string_view(code_).substr(begin);
  }
  /// 1'000 has no character literal.
  bool inside_number() const {
    const std::string_view word = word_before();
    return !word.empty() && std::isdigit(static_cast<unsigned char>(word[0]));
  }
  bool after_raw_prefix() const {
    const std::string_view word = word_before();
    return word == "R" || word == "u8R" || word == "uR" || word == "UR" || word == "LR";
  }
  void raw_literal() {
    const std::size_t open = text_.find('(', at_);
    std::size_t end = text_.size();
    if (open != std::string_view::npos) {
      const std::string close = ")" + std::string(text_.substr(at_ + 1, open - at_ - 1)) + "\"";
      end = std::min(text_.find(close, open), text_.size() - close.size()) + close.size();
    }
    code_ += text_.substr(at_, end - at_);
    at_ = end;
  }
  void literal(char quote) {
    code_ += quote;
    for (++at_; at_ < text_.size() && text_[at_] != '\n'; ++at_) {
      code_ += text_[at_];
      if (text_[at_] == quote) {
        ++at_;
        return;
      }
      if (text_[at_] == '\\' && at_ + 1 < text_.size()) code_ += text_[++at_];
    }
  }

  std::string_view text_;
  std::size_t at_ = 0;
  std::string code_;
};

}  // namespace

std::string cpp_code(std::string_view text) { return CppReader(text).code(); }

std::string cmake_code(std::string_view text) {
  std::string code;
  for (const std::string& line : split_lines(text)) {
    const std::string content = trim(line);
    if (!content.empty() && !content.starts_with('#')) code += content + "\n";
  }
  return code;
}

std::string code_of(std::string_view path, std::string_view text) {
  constexpr std::array kCpp = {".cu", ".cuh", ".cc", ".h", ".inc"};
  if (std::ranges::any_of(kCpp, [&](const char* ending) { return path.ends_with(ending); })) {
    return cpp_code(text);
  }
  return path.ends_with(".cmake") ? cmake_code(text) : std::string(text);
}

std::string digest(std::string_view text) {
  std::array<unsigned char, SHA256_DIGEST_LENGTH> bytes;
  SHA256(reinterpret_cast<const unsigned char*>(text.data()), text.size(), bytes.data());
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string hex;
  for (std::size_t i = 0; i < 8; ++i) {
    hex += kDigits[bytes[i] >> 4];
    hex += kDigits[bytes[i] & 15];
  }
  return hex;
}

}  // namespace gauntlet::tests::gpu
