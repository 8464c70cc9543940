// How o200k cuts text into pieces before any merging. The regular expression is kept as text, to be
// recognised in a tokenizer.json, and its matching is written out by hand in time linear in the
// text.
#pragma once
#include <cstddef>
#include <string_view>

namespace gauntlet::model::inline tokens {

inline constexpr std::string_view kO200kPattern =
    R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?)"
    R"(|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?)"
    R"(|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)";

/// The size in bytes of the first piece of `text`, which must not be empty. Bytes that are no UTF-8
/// are cut as the U+FFFD that would replace them.
std::size_t first_piece_size(std::string_view text);

}  // namespace gauntlet::model::inline tokens
