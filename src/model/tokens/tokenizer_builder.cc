#include "model/tokens/tokenizer_builder.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "model/files/printable.h"

namespace gauntlet::model::inline tokens {
namespace {

constexpr std::size_t kMaxTokenBytes = 1 << 16;

/// The byte that each character below 324 spells, -1 for none: printable characters of Latin-1
/// spell themselves, and the 68 other bytes are spelled by U+0100 onwards in their order.
constexpr std::array<std::int16_t, 324> kSpelled = [] {
  std::array<std::int16_t, 324> table{};
  for (auto& byte : table) byte = -1;
  std::size_t next = 256;
  for (std::int16_t byte = 0; byte < 256; ++byte) {
    const bool printable = (byte >= 33 && byte <= 126) || (byte >= 161 && byte != 173);
    table[printable ? static_cast<std::size_t>(byte) : next++] = byte;
  }
  return table;
}();

}  // namespace

bool append_spelled_bytes(std::string_view spelling, std::string& bytes) {
  const char* const end = spelling.data() + spelling.size();
  for (const char* at = spelling.data(); at != end;) {
    const Utf8Char next = next_utf8(at, end);
    if (next.point >= kSpelled.size() || kSpelled[next.point] < 0) return false;
    bytes += static_cast<char>(kSpelled[next.point]);
    at += next.size;
  }
  return true;
}

bool TokenizerBuilder::fail(std::string sentence) {
  if (error_.empty()) error_ = std::move(sentence);
  return false;
}

void TokenizerBuilder::reserve(std::size_t num_tokens, std::size_t num_merges) {
  num_tokens = std::min<std::size_t>(num_tokens, kMaxTokens);
  made_.tokens_.reserve(num_tokens, num_tokens * 8);
  made_.merges_.reserve(std::min<std::size_t>(num_merges, kMaxMerges));
}

bool TokenizerBuilder::define(std::int64_t id, std::string_view bytes) {
  if (id < 0 || id >= kMaxTokens) {
    return fail(fmt::format("token '{}' has the id {}, which is not between 0 and {}", shown(bytes),
                            id, kMaxTokens - 1));
  }
  if (bytes.empty() || bytes.size() > kMaxTokenBytes) {
    return fail(fmt::format("token {} has {} bytes, not between 1 and {}", id, bytes.size(),
                            kMaxTokenBytes));
  }
  const auto narrow = static_cast<std::int32_t>(id);
  if (!made_.tokens_.define(narrow, bytes) && made_.tokens_.bytes(narrow) != bytes) {
    return fail(fmt::format("tokens '{}' and '{}' share the id {}",
                            shown(made_.tokens_.bytes(narrow)), shown(bytes), id));
  }
  return true;
}

bool TokenizerBuilder::add_token(std::int64_t id, std::string_view spelling) {
  bytes_.clear();
  if (!append_spelled_bytes(spelling, bytes_)) {
    return fail(fmt::format("token '{}' has a character that byte-level BPE does not use",
                            shown(spelling)));
  }
  if (!define(id, bytes_)) return false;
  if (!made_.tokens_.make_findable(static_cast<std::int32_t>(id))) {
    return fail(fmt::format("token '{}' is there twice", shown(bytes_)));
  }
  return true;
}

bool TokenizerBuilder::add_added(std::int64_t id, std::string_view text, AddedTokens::Kind kind) {
  if (!define(id, text)) return false;
  if (!made_.added_.add(text, static_cast<std::int32_t>(id), kind)) {
    return fail(fmt::format("added token '{}' is there twice", shown(text)));
  }
  return true;
}

bool TokenizerBuilder::add_unused(std::int64_t id, std::string_view text) {
  return define(id, text);
}

bool TokenizerBuilder::add_merge(std::string_view left, std::string_view right) {
  const auto find = [this](std::string_view bytes) { return made_.tokens_.find(bytes); };
  left_.clear();
  bytes_.clear();
  const bool spelled = append_spelled_bytes(left, left_) && append_spelled_bytes(right, bytes_);
  const std::int32_t left_id = find(left_);
  const std::int32_t right_id = find(bytes_);
  const std::int32_t merged_id = find(left_.append(bytes_));
  if (!spelled || left_id == kNoToken || right_id == kNoToken || merged_id == kNoToken) {
    return fail(fmt::format("merge {} of '{}' and '{}' needs a token that the vocabulary lacks",
                            made_.merges_.size(), shown(left), shown(right)));
  }
  if (made_.merges_.size() == kMaxMerges) {
    return fail(fmt::format("there are more than {} merges", kMaxMerges));
  }
  made_.merges_.add(left_id, right_id, merged_id);
  return true;
}

bool TokenizerBuilder::add_merge(std::string_view pair) {
  const std::size_t space = pair.find(' ');
  if (space == std::string_view::npos) {
    return fail(fmt::format("merge {}, '{}', is not two tokens with a space between",
                            made_.merges_.size(), shown(pair)));
  }
  return add_merge(pair.substr(0, space), pair.substr(space + 1));
}

bool TokenizerBuilder::finish(WholePieces whole) {
  TokenTable& tokens = made_.tokens_;
  std::array<std::int32_t, 256> byte_tokens;
  for (int byte = 0; byte < 256; ++byte) {
    const char c = static_cast<char>(byte);
    byte_tokens[static_cast<std::size_t>(byte)] = tokens.find({&c, 1});
    if (tokens.find({&c, 1}) == kNoToken) {
      return fail(fmt::format("the vocabulary has no token for the byte 0x{:02x}", byte));
    }
  }
  made_.merges_.set_byte_tokens(byte_tokens);
  if (whole == WholePieces::are_merged) {
    std::vector<std::int32_t> reached;
    std::vector<std::int32_t> ids;
    for (std::int32_t id = 0; id < tokens.size(); ++id) {
      if (!tokens.defined(id) || tokens.find(tokens.bytes(id)) != id) continue;
      ids.clear();
      made_.merges_.encode(tokens.bytes(id), ids);
      if (ids.size() == 1 && ids.front() == id) reached.push_back(id);
    }
    tokens.forget_findable();
    for (const std::int32_t id : reached) tokens.make_findable(id);
  }
  return true;
}

}  // namespace gauntlet::model::inline tokens
