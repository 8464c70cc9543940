#include "server/http/wire/chunked_body.h"

#include <algorithm>
#include <charconv>

#include "server/http/wire/request_head.h"

namespace gauntlet::server::inline http {
namespace {

constexpr std::size_t kMaxSizeDigits = 15;  // of a size that fits, zeros before it included
constexpr std::string_view kEndOfLine = "\r\n";

/// A bare line feed would end the line for another reader, and is no part of an extension.
bool is_extension(std::string_view text) {
  return text.empty() || (text.front() == ';' && is_field_text(text));
}

}  // namespace

ChunkedBody::State ChunkedBody::read_size_line() {
  const std::size_t num_digits =
      std::min(line_.find_first_not_of("0123456789abcdefABCDEF"), line_.size());
  if (num_digits == 0 || num_digits > kMaxSizeDigits ||
      !is_extension(std::string_view(line_).substr(num_digits))) {
    return State::malformed;
  }
  std::from_chars(line_.data(), line_.data() + num_digits, left_, 16);
  if (left_ > limits_.body_bytes - body_bytes_) return State::body_too_large;
  body_bytes_ += left_;
  stage_ = left_ > 0 ? Stage::data : Stage::trailer;
  return State::more;
}

ChunkedBody::State ChunkedBody::read_trailer_line() {
  if (line_.empty()) return State::done;
  return parse_field_line(line_) ? State::more : State::malformed;
}

ChunkedBody::State ChunkedBody::take_data(std::string_view& bytes, std::string& body) {
  const std::size_t count = std::min<std::uint64_t>(left_, bytes.size());
  if (stage_ == Stage::data) {
    body.append(bytes.substr(0, count));
  } else if (bytes.substr(0, count) != kEndOfLine.substr(kEndOfLine.size() - left_, count)) {
    return State::malformed;
  }
  bytes.remove_prefix(count);
  left_ -= count;
  if (left_ > 0) return State::more;
  const bool was_data = stage_ == Stage::data;
  stage_ = was_data ? Stage::data_end : Stage::size;
  left_ = was_data ? kEndOfLine.size() : 0;
  return State::more;
}

ChunkedBody::State ChunkedBody::read(std::string_view& bytes, std::string& body) {
  while (!bytes.empty()) {
    if (stage_ == Stage::data || stage_ == Stage::data_end) {
      if (const State state = take_data(bytes, body); state != State::more) return state;
      continue;
    }
    const char c = bytes.front();
    bytes.remove_prefix(1);
    const bool after_return = line_.ends_with('\r');
    if (after_return != (c == '\n')) return State::malformed;
    line_ += c;
    if (!after_return) {
      const std::size_t free = stage_ == Stage::size ? kMaxSizeDigits + kEndOfLine.size() : 0;
      if (line_.size() > free && ++extra_bytes_ > limits_.extra_bytes)
        return State::extra_too_large;
      continue;
    }
    line_.resize(line_.size() - kEndOfLine.size());
    const State state = stage_ == Stage::size ? read_size_line() : read_trailer_line();
    if (state != State::more) return state;
    line_.clear();
  }
  return State::more;
}

}  // namespace gauntlet::server::inline http
