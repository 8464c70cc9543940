// The text of a token stream as it may be shown: whole characters only, and nothing that could yet
// become part of a stop string.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "model/tokens/tokenizer.h"

namespace gauntlet::engine::inline serving {

class TextStream {
 public:
  /// `stops` are not empty strings. The tokenizer outlives this object.
  TextStream(const model::Tokenizer& tokenizer, std::vector<std::string> stops);

  /// The text that is safe to show after this token.
  std::string push(std::int32_t token);
  /// The same after text that is whole characters already, as a parser of messages hands out.
  std::string push_text(std::string_view text) { return stopped_ ? "" : take(text); }
  /// A stop string was found; the text ends before it, and nothing more is taken.
  bool stopped() const { return stopped_; }
  /// Bytes of text so far, shown or held; what comes after a stop string is none.
  std::size_t taken_bytes() const { return taken_bytes_; }
  /// What is still held when no token follows.
  std::string finish();

 private:
  std::string take(std::string_view text);
  std::size_t held_bytes() const;

  const model::Tokenizer& tokenizer_;
  std::vector<std::string> stops_;
  model::Utf8Holder characters_;
  std::string held_;  // no stop string in it, but its end may begin one
  std::size_t taken_bytes_ = 0;
  bool stopped_ = false;
};

}  // namespace gauntlet::engine::inline serving
