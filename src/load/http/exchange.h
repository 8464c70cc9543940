// One HTTP request and its answer as it arrives. Private to the client: it brings Boost along.
#pragma once
#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ssl.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <memory>
#include <optional>
#include <string>

#include "load/http/answer.h"
#include "load/http/url.h"

namespace gauntlet::load::inline http {

/// What all connections to a server share.
struct Peer {
  Url url;
  std::string api_key;
  boost::asio::ip::tcp::resolver::results_type addresses;
  boost::asio::ssl::context* tls = nullptr;  // with an https URL
};

class Connection : public std::enable_shared_from_this<Connection> {
 public:
  Connection(boost::asio::io_context& io, const Peer& peer);

  /// Connects where it must. An idle connection that the server has closed in the meantime is
  /// opened again, once. The arguments outlive the exchange.
  boost::asio::awaitable<ExchangeEnd> exchange(const std::string& head_and_body, AnswerSink& sink,
                                               Clock::time_point deadline);
  /// The answer allowed another request after it.
  bool is_open() const { return is_open_; }
  /// Ends an exchange under way.
  void interrupt();

 private:
  boost::asio::awaitable<ExchangeEnd> connect();
  boost::asio::awaitable<ExchangeEnd> read_answer(AnswerSink& sink, bool& has_begun);
  boost::asio::ip::tcp::socket& socket();
  void close();
  void set_deadline(Clock::time_point deadline);
  ExchangeEnd failure(Outcome outcome, const std::string& words) const;

  boost::asio::io_context& io_;
  const Peer& peer_;
  std::optional<boost::asio::ip::tcp::socket> plain_;
  std::optional<boost::asio::ssl::stream<boost::asio::ip::tcp::socket>> tls_;
  boost::asio::steady_timer timer_;
  std::uint64_t exchange_ = 0;  // so that a late timer ends no later exchange
  boost::beast::flat_buffer buffer_;
  bool is_open_ = false;
  std::optional<Outcome> ended_by_;
};

/// The bytes of a request; without a body a GET.
std::string request_text(const Peer& peer, const std::string& path,
                         const std::optional<std::string>& body);

}  // namespace gauntlet::load::inline http
