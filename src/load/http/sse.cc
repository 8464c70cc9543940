#include "load/http/sse.h"

#include <algorithm>

namespace gauntlet::load::inline http {
namespace {

constexpr std::size_t kMostBytes = std::size_t{1} << 20;
constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";

}  // namespace

bool SseParser::feed(std::string_view bytes) {
  while (!bytes.empty()) {
    if (after_return_ && bytes.front() == '\n') bytes.remove_prefix(1);
    after_return_ = false;
    const std::size_t end = std::min(bytes.find('\n'), bytes.find('\r'));
    if (end == std::string_view::npos) {
      partial_ += bytes;
      break;
    }
    const std::string_view head = bytes.substr(0, end);
    after_return_ = bytes[end] == '\r';
    if (partial_.empty()) {
      line(head);
    } else {
      partial_ += head;
      line(partial_);
      partial_.clear();
    }
    bytes.remove_prefix(end + 1);
  }
  return partial_.size() + data_.size() <= kMostBytes;
}

void SseParser::line(std::string_view text) {
  if (!begun_ && text.starts_with(kByteOrderMark)) text.remove_prefix(kByteOrderMark.size());
  begun_ = true;
  if (text.empty()) return dispatch();
  if (!text.starts_with("data")) return;  // a comment, or a field that does not matter here
  text.remove_prefix(4);
  if (!text.empty() && text.front() != ':') return;
  if (!text.empty()) text.remove_prefix(1);
  if (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  if (has_data_) data_ += '\n';
  has_data_ = true;
  data_ += text;
}

void SseParser::dispatch() {
  if (has_data_) sink_(data_);
  data_.clear();
  has_data_ = false;
}

}  // namespace gauntlet::load::inline http
