#include "model/tokens/added_tokens.h"

#include <algorithm>
#include <functional>

#include "core/check.h"
#include "model/tokens/token_table.h"

namespace gauntlet::model::inline tokens {

bool AddedTokens::add(std::string_view text, std::int32_t id, Kind kind) {
  check(!text.empty(), "an added token needs text");
  if (!entries_.emplace(std::string(text), Entry{id, kind}).second) return false;
  auto& sizes = sizes_[static_cast<unsigned char>(text.front())];
  if (sizes.empty()) first_bytes_ += text.front();
  const auto at = std::lower_bound(sizes.begin(), sizes.end(), text.size(), std::greater<>());
  if (at == sizes.end() || *at != text.size()) sizes.insert(at, text.size());
  if (kind == Kind::special) {
    specials_.insert(std::upper_bound(specials_.begin(), specials_.end(), id), id);
  }
  return true;
}

std::size_t AddedTokens::find_first_byte(std::string_view text, std::size_t from) const {
  if (first_bytes_.size() == 1) return text.find(first_bytes_.front(), from);
  for (std::size_t at = from; at < text.size(); ++at) {
    if (!sizes_[static_cast<unsigned char>(text[at])].empty()) return at;
  }
  return std::string_view::npos;
}

AddedTokens::Match AddedTokens::find(std::string_view text, std::size_t from, Seek seek) const {
  if (seek == Seek::plain_only && specials_.size() == entries_.size()) return {};
  for (std::size_t at = find_first_byte(text, from); at != std::string_view::npos;
       at = find_first_byte(text, at + 1)) {
    for (const std::size_t size : sizes_[static_cast<unsigned char>(text[at])]) {
      if (size > text.size() - at) continue;
      const auto entry = entries_.find(text.substr(at, size));
      if (entry == entries_.end()) continue;
      if (seek == Seek::plain_only && entry->second.kind == Kind::special) continue;
      return {.begin = at, .size = size, .id = entry->second.id};
    }
  }
  return {};
}

std::int32_t AddedTokens::special(std::string_view text) const {
  const auto entry = entries_.find(text);
  const bool found = entry != entries_.end() && entry->second.kind == Kind::special;
  return found ? entry->second.id : kNoToken;
}

bool AddedTokens::is_special(std::int32_t id) const {
  return std::binary_search(specials_.begin(), specials_.end(), id);
}

}  // namespace gauntlet::model::inline tokens
