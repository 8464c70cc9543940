// One connection from its first byte to its last. Private to the server: it brings Boost along.
#pragma once
#include <atomic>
#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ssl/context.hpp>
#include <cstdint>
#include <string>

#include "server/body_budget.h"
#include "server/http_server.h"

namespace gauntlet::server {

/// What all connections of a server share.
struct ConnectionContext {
  const HttpServerConfig& config;
  Handler& handler;
  boost::asio::ssl::context* tls;  // null: plain
  std::atomic<bool>& draining;
  std::atomic<std::uint64_t>& next_request;
  BodyBudget& bodies;
  boost::asio::any_io_executor aside;  // where large bodies are handled: streams must not wait
  std::uint64_t chance;                // request ids differ between servers
};

/// `waiting` is true while no request is under way, when draining may close the socket.
boost::asio::awaitable<void> serve_connection(boost::asio::ip::tcp::socket& socket,
                                              ConnectionContext& context,
                                              std::atomic<bool>& waiting);

}  // namespace gauntlet::server
