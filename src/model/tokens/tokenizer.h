// Text to tokens and back, exactly as the published gpt-oss tokenizer does it: the o200k split,
// then byte-pair merging. Immutable once made, so that threads may share one.
#pragma once
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/expected.h"
#include "model/tokens/added_tokens.h"
#include "model/tokens/merge_table.h"
#include "model/tokens/token_table.h"
#include "model/tokens/utf8.h"

namespace gauntlet::model::inline tokens {

/// Whether text that spells a special token, such as "<|end|>", is that token or just text. Text
/// from outside is always just text.
enum class SpecialTokens { as_text, as_special };

/// Whether decoding writes special tokens out.
enum class SpecialText { shown, skipped };

/// The tokenizer's part of a GGUF file, under tokenizer.ggml.
struct GgufTokens {
  std::string model;                // "gpt2": byte-level BPE
  std::string pre;                  // "gpt-4o": the o200k split
  std::vector<std::string> tokens;  // by id
  std::vector<std::int32_t> types;  // 1 normal, 3 control, 4 user-defined, 5 unused
  std::vector<std::string> merges;  // "left right", by rank
};

class Tokenizer {
 public:
  /// Hugging Face's tokenizer.json. `where` names it in errors.
  static Expected<Tokenizer> from_json(std::string_view text, std::string_view where);
  static Expected<Tokenizer> from_gguf(const GgufTokens& gguf, std::string_view where);

  /// Never adds a token that the text does not spell, BOS included. Any bytes are accepted and come
  /// back from decode().
  std::vector<std::int32_t> encode(std::string_view text,
                                   SpecialTokens specials = SpecialTokens::as_text) const;

  /// The same in portions, so that a large text needs no large list.
  using Sink = std::function<void(std::span<const std::int32_t>)>;
  void encode(std::string_view text, SpecialTokens specials, const Sink& sink) const;

  /// Bytes, which are UTF-8 only as far as the tokens are. Ids without a token give nothing.
  std::string decode(std::span<const std::int32_t> ids,
                     SpecialText specials = SpecialText::shown) const;

  /// Empty for an id without a token, whatever its value.
  std::string_view token_bytes(std::int32_t id) const { return tokens_.bytes(id); }
  /// The id of a special token, as of "<|start|>".
  std::optional<std::int32_t> special(std::string_view text) const;
  bool is_special(std::int32_t id) const { return added_.is_special(id); }
  /// The ids of all special tokens, rising.
  std::vector<std::int32_t> specials() const { return added_.specials(); }
  /// One more than the largest id with a token; a model's own vocabulary may be padded beyond.
  std::int32_t vocab_size() const { return tokens_.size(); }

 private:
  friend class TokenizerBuilder;
  Tokenizer() = default;

  void encode_all(std::string_view text, SpecialTokens specials, std::vector<std::int32_t>& ids,
                  const Sink& sink) const;
  void encode_pieces(std::string_view text, std::vector<std::int32_t>& ids, const Sink& sink) const;

  TokenTable tokens_;
  MergeTable merges_;
  AddedTokens added_;
};

}  // namespace gauntlet::model::inline tokens
