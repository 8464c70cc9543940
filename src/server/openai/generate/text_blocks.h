// A long text in blocks: it grows without being copied, and what is taken off its front is freed.
#pragma once
#include <algorithm>
#include <deque>
#include <iterator>
#include <string>
#include <string_view>
#include <utility>

namespace gauntlet::server::inline openai {

class TextBlocks {
 public:
  void append(std::string_view text) {
    if (text.empty()) return;
    bytes_ += text.size();
    if (blocks_.empty() || blocks_.back().size() + text.size() > kBlockBytes) {
      blocks_.emplace_back(text);
    } else {
      blocks_.back() += text;
    }
  }
  /// The first is not copied either.
  void append_block(std::string text) {
    if (!blocks_.empty() || text.empty()) return append(text);
    bytes_ += text.size();
    blocks_.push_back(std::move(text));
  }
  /// Moves it: nothing is copied.
  void append(TextBlocks other) {
    bytes_ += other.bytes_;
    if (other.num_taken_ > 0) other.blocks_.front().erase(0, other.num_taken_);
    std::ranges::move(other.blocks_, std::back_inserter(blocks_));
  }

  bool empty() const { return bytes_ == 0; }
  std::size_t size() const { return bytes_; }

  /// Off the front, at most so many bytes.
  std::string take(std::size_t most_bytes) {
    if (num_taken_ == 0 && !blocks_.empty() && blocks_.front().size() == bytes_ &&
        bytes_ <= most_bytes) {
      bytes_ = 0;
      std::string all = std::move(blocks_.front());
      blocks_.pop_front();
      return all;
    }
    std::string text;
    text.reserve(std::min(most_bytes, bytes_));
    while (text.size() < most_bytes && !blocks_.empty()) {
      const std::string_view left = std::string_view(blocks_.front()).substr(num_taken_);
      const std::string_view part = left.substr(0, most_bytes - text.size());
      text += part;
      num_taken_ += part.size();
      if (part.size() == left.size()) {
        blocks_.pop_front();
        num_taken_ = 0;
      }
    }
    bytes_ -= text.size();
    return text;
  }

 private:
  static constexpr std::size_t kBlockBytes = 64 << 10;

  std::deque<std::string> blocks_;  // none of them empty
  std::size_t bytes_ = 0;
  std::size_t num_taken_ = 0;  // bytes of the first block
};

}  // namespace gauntlet::server::inline openai
