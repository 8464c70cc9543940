// A tokenizer's contents as a list of tokens, the form in which files of both kinds can say it.
#pragma once
#include "model/config.h"
#include "model/files/gguf.h"
#include "model/tokens/tokenizer.h"

namespace gauntlet::model::inline tokens {

/// The kinds of GgufTokens::types.
enum class TokenKind : std::int32_t { normal = 1, control = 3, user_defined = 4, unused = 5 };

Expected<GgufTokens> read_gguf_tokens(const GgufFile& file);

/// Of a tokenizer.json. Ids below `vocab` that it leaves out become unused tokens.
Expected<GgufTokens> read_json_tokens(std::string_view text, std::string_view where,
                                      std::int64_t vocab);

/// For random weights: all single bytes, harmony's special tokens, and as many words as it takes;
/// no two alike. Its ids of special tokens are the shape's where it is a published one.
GgufTokens make_tokens(const ModelConfig& config);

/// A tokenizer.json that says the same.
std::string write_tokenizer_json(const GgufTokens& tokens);

/// The id of a token, or -1.
std::int64_t id_of(const GgufTokens& tokens, std::string_view text);

}  // namespace gauntlet::model::inline tokens
