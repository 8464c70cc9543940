// Reads requests off one connection, a head and then its body, within the limits of the server.
// Private to the server: it brings Boost along.
#pragma once
#include <boost/asio/awaitable.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "server/http/body_budget.h"
#include "server/http/http_server.h"
#include "server/http/transport.h"
#include "server/http/wire/request_head.h"

namespace gauntlet::server::inline http {

class RequestReader {
 public:
  RequestReader(Transport& transport, const HttpLimits& limits);

  /// Why the connection is over. Nothing to tell: the other end went, or was too slow.
  struct Fault {
    std::optional<ApiError> told;
  };
  /// Nothing when it came as it should. The caller sets the time limit of each.
  boost::asio::awaitable<std::optional<Fault>> read_head(RequestHead& head);
  boost::asio::awaitable<std::optional<Fault>> read_body(const RequestHead& head,
                                                         BodyBudget::Share& share,
                                                         std::string& body);
  /// Ends a read_body() under way that lost its share to others. On the connection's strand.
  void interrupt_body();

 private:
  std::string_view unread() const;
  /// More bytes, or the fault of there being none.
  boost::asio::awaitable<std::optional<Fault>> read_more();
  std::optional<Fault> fault_of_share(BodyBudget::Share& share) const;
  boost::asio::awaitable<std::optional<Fault>> read_sized(std::uint64_t length,
                                                          BodyBudget::Share& share,
                                                          std::string& body);
  boost::asio::awaitable<std::optional<Fault>> read_chunks(BodyBudget::Share& share,
                                                           std::string& body);

  Transport& transport_;
  const HttpLimits& limits_;
  boost::beast::flat_buffer buffer_;
  bool reads_body_ = false;
};

}  // namespace gauntlet::server::inline http
