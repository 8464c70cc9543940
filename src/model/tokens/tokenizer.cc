#include "model/tokens/tokenizer.h"

#include "model/tokens/o200k_split.h"

namespace gauntlet::model::inline tokens {
namespace {

/// Ids that are gathered before a sink gets them.
constexpr std::size_t kPortion = 1 << 16;

}  // namespace

void Tokenizer::encode_pieces(std::string_view text, std::vector<std::int32_t>& ids,
                              const Sink& sink) const {
  while (!text.empty()) {
    const std::string_view piece = text.substr(0, first_piece_size(text));
    text.remove_prefix(piece.size());
    if (const std::int32_t id = tokens_.find(piece); id != kNoToken) {
      ids.push_back(id);
    } else {
      merges_.encode(piece, ids);
    }
    if (sink && ids.size() >= kPortion) {
      sink(ids);
      ids.clear();
    }
  }
}

void Tokenizer::encode_all(std::string_view text, SpecialTokens specials,
                           std::vector<std::int32_t>& ids, const Sink& sink) const {
  const auto seek = specials == SpecialTokens::as_special ? AddedTokens::Seek::all
                                                          : AddedTokens::Seek::plain_only;
  for (std::size_t at = 0; at < text.size();) {
    const AddedTokens::Match match = added_.find(text, at, seek);
    encode_pieces(text.substr(at, match.begin - at), ids, sink);
    if (match.begin == std::string_view::npos) break;
    ids.push_back(match.id);
    at = match.begin + match.size;
  }
}

std::vector<std::int32_t> Tokenizer::encode(std::string_view text, SpecialTokens specials) const {
  std::vector<std::int32_t> ids;
  encode_all(text, specials, ids, nullptr);
  return ids;
}

void Tokenizer::encode(std::string_view text, SpecialTokens specials, const Sink& sink) const {
  std::vector<std::int32_t> ids;
  encode_all(text, specials, ids, sink);
  if (!ids.empty()) sink(ids);
}

std::string Tokenizer::decode(std::span<const std::int32_t> ids, SpecialText specials) const {
  std::string bytes;
  for (const std::int32_t id : ids) {
    if (specials == SpecialText::skipped && is_special(id)) continue;
    bytes += token_bytes(id);
  }
  return bytes;
}

std::optional<std::int32_t> Tokenizer::special(std::string_view text) const {
  const std::int32_t id = added_.special(text);
  return id == kNoToken ? std::nullopt : std::optional(id);
}

}  // namespace gauntlet::model::inline tokens
