#include "load/http/exchange.h"

#include <fmt/format.h>

#include <boost/asio/connect.hpp>
#include <boost/asio/write.hpp>
#include <boost/beast/http/basic_parser.hpp>
#include <tuple>

#include "core/check.h"
#include "load/http/await.h"

namespace gauntlet::load::inline http {
namespace {

namespace asio = boost::asio;
namespace http = boost::beast::http;
using boost::beast::error_code;
using boost::beast::string_view;
using tcp = asio::ip::tcp;

constexpr std::size_t kReadBytes = 8 << 10;

/// Hands the body on where it lies: no copy, no buffer of its own.
class AnswerParser final : public http::basic_parser<false> {
 public:
  explicit AnswerParser(AnswerSink& sink) : sink_(sink) {
    eager(true);
    body_limit(boost::none);
  }
  void set_time(Clock::time_point at) { at_ = at; }

 private:
  void on_request_impl(http::verb, string_view, string_view, int, error_code&) override {}
  void on_response_impl(int status, string_view, int, error_code&) override {
    sink_.on_head(status);
  }
  void on_field_impl(http::field, string_view, string_view, error_code&) override {}
  void on_header_impl(error_code&) override {}
  void on_body_init_impl(const boost::optional<std::uint64_t>&, error_code&) override {}
  std::size_t on_body_impl(string_view body, error_code& error) override {
    if (!sink_.on_body({body.data(), body.size()}, at_)) error = http::error::unexpected_body;
    return body.size();
  }
  void on_chunk_header_impl(std::uint64_t, string_view, error_code&) override {}
  std::size_t on_chunk_body_impl(std::uint64_t, string_view body, error_code& error) override {
    return on_body_impl(body, error);
  }
  void on_finish_impl(error_code&) override {}

  AnswerSink& sink_;
  Clock::time_point at_;
};

}  // namespace

std::string request_text(const Peer& peer, const std::string& path,
                         const std::optional<std::string>& body) {
  std::string text = fmt::format("{} {}{} HTTP/1.1\r\nHost: {}\r\nUser-Agent: gauntlet-load\r\n",
                                 body ? "POST" : "GET", peer.url.path, path, peer.url.authority());
  if (!peer.api_key.empty()) text += fmt::format("Authorization: Bearer {}\r\n", peer.api_key);
  if (!body) return text + "\r\n";
  return text + fmt::format("Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{}",
                            body->size(), *body);
}

Connection::Connection(asio::io_context& io, const Peer& peer) : io_(io), peer_(peer), timer_(io) {}

tcp::socket& Connection::socket() { return tls_ ? tls_->next_layer() : *plain_; }

void Connection::close() {
  is_open_ = false;
  if (!tls_ && !plain_) return;
  error_code ignored;
  socket().close(ignored);
}

void Connection::set_deadline(Clock::time_point deadline) {
  timer_.expires_at(deadline);
  timer_.async_wait([held = weak_from_this(), exchange = exchange_](error_code error) {
    const auto self = held.lock();
    if (error || !self || self->exchange_ != exchange) return;
    self->ended_by_ = Outcome::timeout;
    self->close();
  });
}

void Connection::interrupt() {
  ended_by_ = Outcome::interrupted;
  close();
}

ExchangeEnd Connection::failure(Outcome outcome, const std::string& words) const {
  if (!ended_by_) return {.outcome = outcome, .words = words};
  return {
      .outcome = *ended_by_,
      .words = *ended_by_ == Outcome::timeout ? "no end of the answer within the time limit" : ""};
}

asio::awaitable<ExchangeEnd> Connection::connect() {
  tls_.reset();
  plain_.reset();
  buffer_.clear();
  if (peer_.tls) {
    tls_.emplace(io_, *peer_.tls);
    SSL_set_tlsext_host_name(tls_->native_handle(), peer_.url.host.c_str());
    error_code ignored;
    tls_->set_verify_callback(asio::ssl::host_name_verification(peer_.url.host), ignored);
  } else {
    plain_.emplace(io_);
  }
  const auto [error, endpoint] = co_await asio::async_connect(socket(), peer_.addresses, kAwait);
  if (error) co_return failure(Outcome::connect, error.message());
  error_code ignored;
  socket().set_option(tcp::no_delay(true), ignored);
  if (tls_) {
    const auto [refused] = co_await tls_->async_handshake(asio::ssl::stream_base::client, kAwait);
    if (refused) co_return failure(Outcome::connect, "TLS: " + refused.message());
  }
  is_open_ = true;
  co_return ExchangeEnd{};
}

asio::awaitable<ExchangeEnd> Connection::exchange(const std::string& head_and_body,
                                                  AnswerSink& sink, Clock::time_point deadline) {
  const auto self = shared_from_this();
  ++exchange_;
  ended_by_.reset();
  set_deadline(deadline);
  ExchangeEnd end;
  bool is_reused = is_open_;
  while (true) {
    if (!is_reused) end = co_await connect();
    if (end.outcome != Outcome::ok) break;
    bool has_begun = false;
    const auto bytes = asio::buffer(head_and_body);
    error_code error;
    std::size_t size = 0;
    // Not one co_await of a choice: GCC 12 destroys what was not chosen, too.
    if (tls_) {
      std::tie(error, size) = co_await asio::async_write(*tls_, bytes, kAwait);
    } else {
      std::tie(error, size) = co_await asio::async_write(*plain_, bytes, kAwait);
    }
    if (error) {
      end = failure(Outcome::connect, error.message());
    } else {
      end = co_await read_answer(sink, has_begun);
    }
    const bool was_stale = is_reused && !has_begun && end.outcome == Outcome::connect;
    if (!was_stale) break;
    is_reused = false;
  }
  ++exchange_;
  timer_.cancel();
  if (end.outcome != Outcome::ok) close();
  co_return end;
}

asio::awaitable<ExchangeEnd> Connection::read_answer(AnswerSink& sink, bool& has_begun) {
  AnswerParser parser(sink);
  while (!parser.is_done()) {
    const auto space = buffer_.prepare(kReadBytes);
    error_code error;
    std::size_t size = 0;
    if (tls_) {
      std::tie(error, size) = co_await tls_->async_read_some(space, kAwait);
    } else {
      std::tie(error, size) = co_await plain_->async_read_some(space, kAwait);
    }
    if (error) {
      error_code at_end;
      if (error == asio::error::eof && parser.got_some()) parser.put_eof(at_end);
      if (parser.is_done()) break;  // an answer that ends with its connection
      const Outcome outcome = has_begun ? Outcome::stream_cut : Outcome::connect;
      co_return failure(outcome, error == asio::error::eof ? "the server closed the connection"
                                                           : error.message());
    }
    has_begun = true;
    parser.set_time(Clock::now());
    buffer_.commit(size);
    error_code fault;
    const std::size_t used = parser.put(buffer_.data(), fault);
    buffer_.consume(used);
    if (fault && fault != http::error::need_more) {
      co_return failure(Outcome::protocol, fault == http::error::unexpected_body
                                               ? "the answer is no stream of events"
                                               : "this is not HTTP: " + fault.message());
    }
  }
  if (!parser.keep_alive()) close();
  co_return ExchangeEnd{};
}

}  // namespace gauntlet::load::inline http
