// What a socket tells of the client at its other end without being read. Private to the server.
#pragma once
#include <netinet/tcp.h>
#include <poll.h>

#include <boost/asio/ip/tcp.hpp>
#include <cstring>
#include <string>

namespace gauntlet::server::inline http {

/// A client that sends no more may still read: only what is written to it tells.
enum class Presence { there, sends_no_more, gone };
inline Presence presence_of(int socket) {
  pollfd state{.fd = socket, .events = POLLRDHUP, .revents = 0};
  if (poll(&state, 1, 0) <= 0) return Presence::there;
  if ((state.revents & (POLLHUP | POLLERR)) != 0) return Presence::gone;
  return (state.revents & POLLRDHUP) != 0 ? Presence::sends_no_more : Presence::there;
}

inline bool takes_bytes(int socket) {
  pollfd state{.fd = socket, .events = POLLOUT, .revents = 0};
  return poll(&state, 1, 0) != 0;
}

/// When the host at the other end vanishes, data on its way is given up after this long.
inline void give_up_unacknowledged(boost::asio::ip::tcp::socket& socket, double limit_s) {
  const auto limit_ms = static_cast<unsigned>(limit_s * 1e3);
  setsockopt(socket.native_handle(), IPPROTO_TCP, TCP_USER_TIMEOUT, &limit_ms, sizeof(limit_ms));
}

/// Whoever has one address of IPv6 usually has the 2^64 around it.
inline std::string neighbourhood_of(const boost::asio::ip::tcp::socket& socket) {
  boost::system::error_code error;
  const auto address = socket.remote_endpoint(error).address();
  if (error) return "";
  if (!address.is_v6() || address.to_v6().is_v4_mapped()) return address.to_string();
  auto bytes = address.to_v6().to_bytes();
  std::memset(bytes.data() + 8, 0, 8);
  return boost::asio::ip::address_v6(bytes).to_string() + "/64";
}

}  // namespace gauntlet::server::inline http
