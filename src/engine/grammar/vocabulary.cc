#include "engine/grammar/vocabulary.h"

#include <algorithm>
#include <limits>
#include <numeric>

#include "core/check.h"

namespace gauntlet::engine::grammar {

Vocabulary::Vocabulary(std::int32_t size,
                       const std::function<std::string_view(std::int32_t)>& bytes_of,
                       std::vector<std::int32_t> end_ids)
    : size_(size), end_ids_(std::move(end_ids)) {
  check(size > 0, "a vocabulary has tokens");
  for (const std::int32_t id : end_ids_)
    check(id >= 0 && id < size, "an end id is in the vocabulary");
  for (std::int32_t id = 0; id < size; ++id) {
    // What ends a text is never also text.
    if (!is_end(id)) text_ += bytes_of(id);
    text_ends_.push_back(text_.size());
    if (!bytes(id).empty()) tokens_.push_back(id);
  }
  std::sort(tokens_.begin(), tokens_.end(), [this](std::int32_t a, std::int32_t b) {
    const int order = bytes(a).compare(bytes(b));
    return order != 0 ? order < 0 : a < b;
  });

  std::vector<std::uint32_t> path;  // the nodes that spell the token before
  std::string_view before;
  const auto close_to = [&](std::size_t depth) {
    for (; path.size() > depth; path.pop_back())
      nodes_[path.back()].end = static_cast<std::uint32_t>(nodes_.size());
  };
  for (std::size_t i = 0; i < tokens_.size(); ++i) {
    const std::string_view token = bytes(tokens_[i]);
    check(token.size() <= std::numeric_limits<std::uint16_t>::max(), "a token is short");
    const auto shared = std::mismatch(before.begin(), before.end(), token.begin(), token.end());
    close_to(static_cast<std::size_t>(shared.first - before.begin()));
    while (path.size() < token.size()) {
      const auto byte = static_cast<std::uint8_t>(token[path.size()]);
      path.push_back(static_cast<std::uint32_t>(nodes_.size()));
      nodes_.push_back({.first_token = static_cast<std::uint32_t>(i),
                        .depth = static_cast<std::uint16_t>(path.size()),
                        .byte = byte});
    }
    // Nodes on the way to a longer token hold none: their first token is the next node's.
    max_depth_ = std::max(max_depth_, token.size());
    before = token;
  }
  close_to(0);
  nodes_.push_back({.end = static_cast<std::uint32_t>(nodes_.size()),
                    .first_token = static_cast<std::uint32_t>(tokens_.size())});
}

std::string_view Vocabulary::bytes(std::int32_t id) const {
  check(id >= 0 && id < size_, "a token id is in the vocabulary");
  const std::size_t begin = id == 0 ? 0 : text_ends_[id - 1];
  return std::string_view(text_).substr(begin, text_ends_[id] - begin);
}

bool Vocabulary::is_end(std::int32_t id) const {
  return std::find(end_ids_.begin(), end_ids_.end(), id) != end_ids_.end();
}

}  // namespace gauntlet::engine::grammar
