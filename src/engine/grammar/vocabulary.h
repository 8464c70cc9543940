// A tokenizer's tokens as a trie of their bytes, laid out depth first: a walk over it is one pass
// over an array. Made once per model.
#pragma once
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace gauntlet::engine::grammar {

class Vocabulary {
 public:
  struct Node {
    std::uint32_t end = 0;          // one past the last node below this one
    std::uint32_t first_token = 0;  // in tokens(); the next node's is one past the last
    std::uint16_t depth = 0;        // bytes from the root, this one included
    std::uint8_t byte = 0;
  };

  /// `bytes_of(id)` for 0 <= id < size: empty for tokens that no text is made of, such as special
  /// ones. `end_ids` may be drawn where a text may end. `size` is the model's, padding included.
  Vocabulary(std::int32_t size, const std::function<std::string_view(std::int32_t)>& bytes_of,
             std::vector<std::int32_t> end_ids);

  std::int32_t size() const { return size_; }
  std::size_t mask_words() const { return (static_cast<std::size_t>(size_) + 31) / 32; }
  std::string_view bytes(std::int32_t id) const;
  bool is_end(std::int32_t id) const;
  std::span<const std::int32_t> end_ids() const { return end_ids_; }

  /// Without the root; node i+1 is below node i exactly when i+1 < nodes()[i].end.
  std::span<const Node> nodes() const { return std::span(nodes_).first(nodes_.size() - 1); }
  /// The tokens that end at a node.
  std::span<const std::int32_t> tokens_at(std::size_t node) const {
    const std::uint32_t first = nodes_[node].first_token;
    return std::span(tokens_).subspan(first, nodes_[node + 1].first_token - first);
  }
  std::size_t max_depth() const { return max_depth_; }

 private:
  std::int32_t size_;
  std::vector<std::int32_t> end_ids_;
  std::string text_;                    // of all tokens, by id
  std::vector<std::size_t> text_ends_;  // by id
  std::vector<Node> nodes_;             // and one after the last
  std::vector<std::int32_t> tokens_;    // by their bytes
  std::size_t max_depth_ = 0;
};

}  // namespace gauntlet::engine::grammar
