// Bytes in and out of one connection, plain or TLS, each operation with a time limit. The only
// place that knows which of the two it is: what is built on it is compiled once. Private to the
// server: it brings Boost along.
#pragma once
#include <array>
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/buffer.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ssl/context.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/system/error_code.hpp>
#include <chrono>
#include <memory>
#include <optional>

namespace gauntlet::server::inline http {

/// How coroutines wait: what failed comes back as a value.
inline constexpr auto kAwait = boost::asio::as_tuple(boost::asio::use_awaitable);

class Transport {
 public:
  using error_code = boost::system::error_code;
  /// A head and a body, or a chunk with its frame, without copying either.
  using Parts = std::array<boost::asio::const_buffer, 3>;

  /// Plain without a context; else handshake() comes first.
  Transport(boost::asio::ip::tcp::socket socket, boost::asio::ssl::context* tls);
  ~Transport();

  boost::asio::awaitable<error_code> handshake();
  struct Read {
    error_code error;
    std::size_t bytes = 0;
  };
  boost::asio::awaitable<Read> read_some(boost::asio::mutable_buffer space);
  /// All of it, or an error. The parts outlive the call.
  boost::asio::awaitable<error_code> write(const Parts& parts);
  /// The same without waiting: how it went, or nothing where the rest, which is then left in the
  /// parts, has to wait for room.
  std::optional<error_code> write_at_once(Parts& parts);
  /// Tells the other end that nothing follows, and waits a little for its own end: a socket closed
  /// on bytes that nobody read resets the connection, and what was answered is lost.
  boost::asio::awaitable<void> close();

  /// Of the operations from now on, all of them together.
  void expires_after(std::chrono::nanoseconds limit);
  void expires_never();
  boost::asio::ip::tcp::socket& socket();

 private:
  struct Streams;
  std::unique_ptr<Streams> streams_;
};

/// What close() does, for a socket that never got a transport.
boost::asio::awaitable<void> close_gently(boost::asio::ip::tcp::socket& socket);

}  // namespace gauntlet::server::inline http
