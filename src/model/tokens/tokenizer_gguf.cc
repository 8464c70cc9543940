// The tokenizer that a GGUF file carries in its metadata.
#include <fmt/format.h>

#include "model/files/printable.h"
#include "model/tokens/tokenizer_builder.h"

namespace gauntlet::model::inline tokens {
namespace {

enum class GgufTokenType : std::int32_t { normal = 1, control = 3, user_defined = 4, unused = 5 };

bool build(const GgufTokens& gguf, TokenizerBuilder& builder) {
  if (gguf.model != "gpt2" || gguf.pre != "gpt-4o") {
    return builder.fail(
        fmt::format("its tokenizer is '{}' with the split '{}'; only gpt2 with gpt-4o is supported",
                    shown(gguf.model), shown(gguf.pre)));
  }
  if (gguf.types.size() != gguf.tokens.size()) {
    return builder.fail(
        fmt::format("it has {} tokens but {} token types", gguf.tokens.size(), gguf.types.size()));
  }
  builder.reserve(gguf.tokens.size(), gguf.merges.size());
  for (std::size_t i = 0; i < gguf.tokens.size(); ++i) {
    const auto id = static_cast<std::int64_t>(i);
    const std::string& token = gguf.tokens[i];
    bool added = false;
    switch (static_cast<GgufTokenType>(gguf.types[i])) {
      case GgufTokenType::normal:
        added = builder.add_token(id, token);
        break;
      case GgufTokenType::control:
        added = builder.add_added(id, token, AddedTokens::Kind::special);
        break;
      case GgufTokenType::user_defined:
        added = builder.add_added(id, token, AddedTokens::Kind::plain);
        break;
      case GgufTokenType::unused:
        added = builder.add_unused(id, token);
        break;
      default:
        return builder.fail(
            fmt::format("token {} has the type {}, which is not supported", i, gguf.types[i]));
    }
    if (!added) return false;
  }
  for (const std::string& merge : gguf.merges) {
    if (!builder.add_merge(merge)) return false;
  }
  return builder.finish(WholePieces::are_merged);
}

}  // namespace

Expected<Tokenizer> Tokenizer::from_gguf(const GgufTokens& gguf, std::string_view where) {
  TokenizerBuilder builder;
  if (!build(gguf, builder)) return Error{fmt::format("{}: {}", where, builder.error())};
  return builder.take();
}

}  // namespace gauntlet::model::inline tokens
