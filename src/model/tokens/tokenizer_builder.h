// Puts a tokenizer together out of what a file says, checking every part; the file formats share
// it.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

#include "core/expected.h"
#include "model/tokens/tokenizer.h"

namespace gauntlet::model::inline tokens {

/// Turns the printable spelling of byte-level BPE (a space is "Ġ") into bytes; false where a
/// character spells none. Appends to `bytes`.
bool append_spelled_bytes(std::string_view spelling, std::string& bytes);

/// Whether text that is a token as a whole is that token even where merging would end elsewhere.
enum class WholePieces { are_tokens, are_merged };

/// Every function returns false once something is wrong; error() then says what.
class TokenizerBuilder {
 public:
  void reserve(std::size_t num_tokens, std::size_t num_merges);

  /// A token of the vocabulary, as byte-level BPE spells it.
  bool add_token(std::int64_t id, std::string_view spelling);
  /// A token by its own text, found before text is split.
  bool add_added(std::int64_t id, std::string_view text, AddedTokens::Kind kind);
  /// A token that text never gives.
  bool add_unused(std::int64_t id, std::string_view text);
  /// The next merge, by spelling; all tokens must be there.
  bool add_merge(std::string_view left, std::string_view right);
  /// Both in one, with a space between.
  bool add_merge(std::string_view pair);

  bool finish(WholePieces whole);
  Tokenizer take() { return std::move(made_); }

  bool fail(std::string sentence);
  const std::string& error() const { return error_; }

 private:
  bool define(std::int64_t id, std::string_view bytes);

  Tokenizer made_;
  std::string error_;
  std::string left_, bytes_;  // kept for their memory
};

}  // namespace gauntlet::model::inline tokens
