// Any bytes as what a client sends over a connection: answered with HTTP, or closed.
#include <sys/socket.h>

#include <array>
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <cstdint>
#include <string>

#include "server/http/connection.h"
#include "tests/fuzz/served.h"

namespace {

using namespace gauntlet;
namespace asio = boost::asio;
using tcp = asio::ip::tcp;

asio::awaitable<void> read_all(tcp::socket& socket, std::string& text) {
  std::array<char, 4096> buffer;
  while (true) {
    const auto [error, size] =
        co_await socket.async_read_some(asio::buffer(buffer), asio::as_tuple(asio::use_awaitable));
    if (error) co_return;
    text.append(buffer.data(), size);
  }
}

asio::awaitable<void> serve(tcp::socket& socket, server::ConnectionContext& context) {
  std::atomic<bool> waiting{true};
  co_await server::serve_connection(socket, context, waiting);
  boost::system::error_code ignored;
  socket.close(ignored);
}

/// What a connection answers to these bytes, after which the client sends no more.
std::string answer_to(server::Handler& handler, const std::uint8_t* data, std::size_t size) {
  const server::HttpServerConfig config{
      .limits = {.header_bytes = 4 << 10, .body_bytes = 16 << 10, .all_bodies_bytes = 64 << 10}};
  std::atomic<bool> draining{false};
  std::atomic<std::uint64_t> next_request{0};
  server::BodyBudget bodies({.bytes = config.limits.all_bodies_bytes});
  const server::AccessRules access("127.0.0.1", {"x", "localhost"}, {"http://page"});
  asio::io_context io;
  server::ConnectionContext context{.config = config,
                                    .handler = handler,
                                    .tls = nullptr,
                                    .draining = draining,
                                    .next_request = next_request,
                                    .bodies = bodies,
                                    .access = access,
                                    .large_bodies = nullptr,
                                    .chance = 1};
  int ends[2];
  tests::demand(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) == 0, "no sockets");
  // Only their handles are asked for, so that it does not matter that they are of another family.
  tcp::socket near(io, tcp::v4(), ends[0]);
  tcp::socket far(io, tcp::v4(), ends[1]);
  ::send(ends[1], data, size, MSG_NOSIGNAL | MSG_DONTWAIT);
  far.shutdown(tcp::socket::shutdown_send);
  std::string text;
  asio::co_spawn(io, serve(near, context),
                 [](std::exception_ptr fault) { tests::demand(!fault, "a connection threw"); });
  asio::co_spawn(io, read_all(far, text), asio::detached);
  io.run();
  return text;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static tests::Served served;
  constexpr std::size_t kMostBytes = 64 << 10;  // that a socket takes without a reader
  if (size > kMostBytes) return 0;
  const std::string answer = answer_to(served, data, size);
  tests::demand(
      answer.empty() || answer.starts_with("HTTP/1.1 ") || answer.starts_with("HTTP/1.0 "),
      "no HTTP: " + answer);
  // The whole line: an answer may quote the start of one, but a line's end only escaped.
  tests::demand(answer.find("HTTP/1.1 500 Internal Server Error\r\n") == std::string::npos,
                "a fault: " + answer);
  served.check_left_clean();
  return 0;
}
