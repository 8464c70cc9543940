#include "engine/serving/text_stream.h"

#include <algorithm>
#include <utility>

#include "core/check.h"

namespace gauntlet::engine::inline serving {

TextStream::TextStream(const model::Tokenizer& tokenizer, std::vector<std::string> stops)
    : tokenizer_(tokenizer), stops_(std::move(stops)) {
  for (const std::string& stop : stops_) check(!stop.empty(), "a stop string is empty");
}

/// The longest end of what is held that begins a stop string.
std::size_t TextStream::held_bytes() const {
  std::size_t longest = 0;
  for (const std::string& stop : stops_) {
    for (std::size_t size = std::min(stop.size() - 1, held_.size()); size > longest; --size) {
      if (held_.ends_with(std::string_view(stop).substr(0, size))) longest = size;
    }
  }
  return longest;
}

std::string TextStream::take(std::string_view text) {
  taken_bytes_ += text.size();
  if (stops_.empty()) return std::string(text);
  held_ += text;
  std::size_t found = std::string::npos;
  for (const std::string& stop : stops_) found = std::min(found, held_.find(stop));
  if (found != std::string::npos) {
    stopped_ = true;
    held_.resize(found);
    return std::exchange(held_, {});
  }
  const std::size_t free = held_.size() - held_bytes();
  std::string shown = held_.substr(0, free);
  held_.erase(0, free);
  return shown;
}

std::string TextStream::push(std::int32_t token) {
  return stopped_ ? "" : take(characters_.push(tokenizer_.token_bytes(token)));
}

std::string TextStream::finish() {
  if (stopped_) return "";
  std::string shown = take(characters_.finish());
  return shown + std::exchange(held_, {});
}

}  // namespace gauntlet::engine::inline serving
