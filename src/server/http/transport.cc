#include "server/http/transport.h"

#include <algorithm>
#include <boost/asio/error.hpp>
#include <boost/asio/write.hpp>
#include <boost/beast/core/tcp_stream.hpp>
#include <boost/beast/ssl/ssl_stream.hpp>
#include <optional>

namespace gauntlet::server::inline http {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
using asio::ip::tcp;

constexpr auto kGentleClose = std::chrono::seconds(2);

}  // namespace

struct Transport::Streams {
  std::optional<beast::tcp_stream> plain;
  std::optional<beast::ssl_stream<beast::tcp_stream>> tls;

  beast::tcp_stream& lowest() { return tls ? tls->next_layer() : *plain; }
};

Transport::Transport(tcp::socket socket, asio::ssl::context* tls)
    : streams_(std::make_unique<Streams>()) {
  if (tls != nullptr) {
    streams_->tls.emplace(std::move(socket), *tls);
  } else {
    // write() sends at once what the socket has room for.
    error_code ignored;
    socket.non_blocking(true, ignored);
    streams_->plain.emplace(std::move(socket));
  }
}

Transport::~Transport() = default;

asio::awaitable<Transport::error_code> Transport::handshake() {
  if (!streams_->tls) co_return error_code();
  const auto [error] =
      co_await streams_->tls->async_handshake(asio::ssl::stream_base::server, kAwait);
  co_return error;
}

asio::awaitable<Transport::Read> Transport::read_some(asio::mutable_buffer space) {
  if (streams_->tls) {
    const auto [error, bytes] = co_await streams_->tls->async_read_some(space, kAwait);
    co_return Read{error, bytes};
  }
  const auto [error, bytes] = co_await streams_->plain->async_read_some(space, kAwait);
  co_return Read{error, bytes};
}

/// As it nearly always goes for a token: an operation that waits, with its timer, costs more than
/// the sending.
std::optional<Transport::error_code> Transport::write_at_once(Parts& parts) {
  if (streams_->tls) return std::nullopt;
  error_code error;
  std::size_t sent = socket().write_some(parts, error);
  if (error && error != asio::error::would_block) return error;
  if (sent == asio::buffer_size(parts)) return error_code();
  for (asio::const_buffer& part : parts) {
    const std::size_t of_this = std::min(sent, part.size());
    part += of_this;
    sent -= of_this;
  }
  return std::nullopt;
}

asio::awaitable<Transport::error_code> Transport::write(const Parts& parts) {
  if (streams_->tls) {
    const auto [error, bytes] = co_await asio::async_write(*streams_->tls, parts, kAwait);
    co_return error;
  }
  Parts rest = parts;
  if (const auto done = write_at_once(rest)) co_return *done;
  const auto [failed, bytes] = co_await asio::async_write(*streams_->plain, rest, kAwait);
  co_return failed;
}

asio::awaitable<void> Transport::close() {
  if (streams_->tls) co_await streams_->tls->async_shutdown(kAwait);
  co_await close_gently(socket());
}

void Transport::expires_after(std::chrono::nanoseconds limit) {
  streams_->lowest().expires_after(limit);
}

void Transport::expires_never() { streams_->lowest().expires_never(); }

tcp::socket& Transport::socket() { return streams_->lowest().socket(); }

asio::awaitable<void> close_gently(tcp::socket& socket) {
  boost::system::error_code error;
  socket.shutdown(tcp::socket::shutdown_send, error);
  if (error) co_return;
  beast::tcp_stream stream(std::move(socket));
  stream.expires_after(kGentleClose);
  std::array<char, 4096> unread;
  while (!error) {
    const auto [failed, size] = co_await stream.async_read_some(asio::buffer(unread), kAwait);
    error = failed;
  }
}

}  // namespace gauntlet::server::inline http
