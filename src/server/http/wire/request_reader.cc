#include "server/http/wire/request_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/asio/error.hpp>
#include <boost/beast/core/read_size.hpp>

#include "server/http/wire/chunked_body.h"

namespace gauntlet::server::inline http {
namespace {

namespace asio = boost::asio;
using Fault = RequestReader::Fault;

constexpr std::size_t kReadBytes = 64 << 10;

ApiError header_too_large(const HttpLimits& limits) {
  return {.status = 431,
          .message = fmt::format("the header has more than {} bytes", limits.header_bytes)};
}

ApiError body_too_large(const HttpLimits& limits) {
  return {.status = 413,
          .message = fmt::format("the body has more than {} bytes", limits.body_bytes)};
}

struct HeadEnd {
  std::size_t bytes = 0;  // 0: not found
  bool has_bare_line_feed = false;
};

/// Looks from `seen` on: what came before was looked at already.
HeadEnd find_head_end(std::string_view text, std::size_t seen) {
  for (std::size_t i = text.find('\n', seen); i != text.npos; i = text.find('\n', i + 1)) {
    if (i == 0 || text[i - 1] != '\r') return {.has_bare_line_feed = true};
    if (i >= 3 && text[i - 2] == '\n') return {.bytes = i + 1};
  }
  return {};
}

}  // namespace

RequestReader::RequestReader(Transport& transport, const HttpLimits& limits)
    : transport_(transport), limits_(limits), buffer_(limits.header_bytes + kReadBytes) {}

std::string_view RequestReader::unread() const {
  return {static_cast<const char*>(buffer_.data().data()), buffer_.size()};
}

asio::awaitable<std::optional<Fault>> RequestReader::read_more() {
  const std::size_t room = boost::beast::read_size(buffer_, kReadBytes);
  const auto read = co_await transport_.read_some(buffer_.prepare(room));
  buffer_.commit(read.bytes);
  if (read.error) co_return Fault{};
  co_return std::nullopt;
}

asio::awaitable<std::optional<Fault>> RequestReader::read_head(RequestHead& head) {
  const auto refused = [](const char* why) {
    return Fault{ApiError{.message = fmt::format("this is not HTTP: {}", why)}};
  };
  bool skipped_line = false;
  for (std::size_t seen = 0;;) {
    const std::string_view text = unread();
    if (text.starts_with("\r\n") && !skipped_line) {  // some clients end a body with a line of it
      buffer_.consume(2);
      skipped_line = true;
      continue;
    }
    const char first = text.empty() ? 'G' : text.front();
    const bool may_begin = (first >= '!' && first <= '~') || (first == '\r' && text.size() == 1);
    if (!may_begin) co_return refused("the request line is malformed");
    const HeadEnd end = find_head_end(text, seen);
    if (end.has_bare_line_feed) co_return refused("a line ends without a carriage return");
    if ((end.bytes > 0 ? end.bytes : text.size()) > limits_.header_bytes) {
      co_return Fault{header_too_large(limits_)};
    }
    if (end.bytes > 0) {
      auto parsed = parse_request_head(text.substr(0, end.bytes));
      if (!parsed) co_return Fault{parsed.error()};
      head = std::move(*parsed);
      buffer_.consume(end.bytes);
      co_return std::nullopt;
    }
    seen = text.size();
    if (auto fault = co_await read_more()) co_return fault;
  }
}

std::optional<Fault> RequestReader::fault_of_share(BodyBudget::Share& share) const {
  if (share.was_dropped()) {
    return Fault{ApiError{.status = 408,
                          .message = "the body came too slowly while others needed its room",
                          .retry_after_s = 1}};
  }
  return Fault{ApiError{.status = 503,
                        .message = "the bodies of all requests under way take too much memory",
                        .retry_after_s = 1}};
}

asio::awaitable<std::optional<Fault>> RequestReader::read_sized(std::uint64_t length,
                                                                BodyBudget::Share& share,
                                                                std::string& body) {
  if (length > limits_.body_bytes) co_return Fault{body_too_large(limits_)};
  body.reserve(length);  // pages that nothing comes into take no memory
  while (true) {
    const std::size_t count = std::min<std::uint64_t>(length - body.size(), buffer_.size());
    body.append(unread().substr(0, count));
    buffer_.consume(count);
    if (!share.grow_to(body.size())) co_return fault_of_share(share);
    if (body.size() == length) co_return std::nullopt;
    if (auto fault = co_await read_more()) co_return fault;
  }
}

asio::awaitable<std::optional<Fault>> RequestReader::read_chunks(BodyBudget::Share& share,
                                                                 std::string& body) {
  ChunkedBody chunks({.body_bytes = limits_.body_bytes, .extra_bytes = limits_.header_bytes});
  while (true) {
    std::string_view bytes = unread();
    const auto state = chunks.read(bytes, body);
    buffer_.consume(buffer_.size() - bytes.size());
    if (!share.grow_to(body.size())) co_return fault_of_share(share);
    switch (state) {
      case ChunkedBody::State::done:
        co_return std::nullopt;
      case ChunkedBody::State::malformed:
        co_return Fault{ApiError{.message = "this is not HTTP: the body's chunks are malformed"}};
      case ChunkedBody::State::body_too_large:
        co_return Fault{body_too_large(limits_)};
      case ChunkedBody::State::extra_too_large:
        co_return Fault{header_too_large(limits_)};
      case ChunkedBody::State::more:
        break;
    }
    if (auto fault = co_await read_more()) co_return fault;
  }
}

asio::awaitable<std::optional<Fault>> RequestReader::read_body(const RequestHead& head,
                                                               BodyBudget::Share& share,
                                                               std::string& body) {
  if (!head.has_body()) co_return std::nullopt;
  reads_body_ = true;
  std::optional<Fault> fault;
  if (head.is_chunked) {
    fault = co_await read_chunks(share, body);
  } else {
    fault = co_await read_sized(*head.content_length, share, body);
  }
  reads_body_ = false;
  if (!fault && !share.complete()) fault = fault_of_share(share);
  if (fault && !fault->told && share.was_dropped()) fault = fault_of_share(share);
  if (buffer_.size() == 0) buffer_.shrink_to_fit();
  co_return fault;
}

void RequestReader::interrupt_body() {
  boost::system::error_code ignored;
  if (reads_body_) transport_.socket().cancel(ignored);
}

}  // namespace gauntlet::server::inline http
