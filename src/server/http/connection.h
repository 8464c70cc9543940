// One connection from its first byte to its last. Private to the server: it brings Boost along.
#pragma once
#include <atomic>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ssl/context.hpp>
#include <cstdint>
#include <string>

#include "server/http/access_rules.h"
#include "server/http/body_budget.h"
#include "server/http/http_server.h"
#include "server/http/large_body_pool.h"

namespace gauntlet::server::inline http {

/// What all connections of a server share.
struct ConnectionContext {
  const HttpServerConfig& config;
  Handler& handler;
  boost::asio::ssl::context* tls;  // null: plain
  std::atomic<bool>& draining;
  std::atomic<std::uint64_t>& next_request;
  BodyBudget& bodies;
  const AccessRules& access;
  LargeBodyPool* large_bodies;  // null: they are handled like small ones
  std::uint64_t chance;         // request ids differ between servers

  void note_freed(std::size_t bytes) const {
    if (large_bodies != nullptr) large_bodies->note_freed(bytes);
  }
};

/// `waiting` is true while no request is under way, when draining may close the socket.
boost::asio::awaitable<void> serve_connection(boost::asio::ip::tcp::socket& socket,
                                              ConnectionContext& context,
                                              std::atomic<bool>& waiting);

}  // namespace gauntlet::server::inline http
