#include "server/connection.h"

#include <fmt/format.h>
#include <poll.h>

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>
#include <boost/beast/core.hpp>
#include <boost/beast/http.hpp>
#include <boost/beast/ssl.hpp>
#include <chrono>

#include "core/random.h"
#include "server/request_log.h"

namespace gauntlet::server {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = beast::http;
using Clock = std::chrono::steady_clock;

constexpr auto kAwait = asio::as_tuple(asio::use_awaitable);
constexpr auto kPresenceCheck = std::chrono::milliseconds(100);

std::chrono::nanoseconds seconds(double value) {
  return std::chrono::nanoseconds(static_cast<std::int64_t>(value * 1e9));
}

/// The other end has closed, or the connection broke. What it sent before does not matter.
bool is_gone(int socket) {
  pollfd state{.fd = socket, .events = POLLRDHUP, .revents = 0};
  return poll(&state, 1, 0) > 0 && (state.revents & (POLLRDHUP | POLLHUP | POLLERR)) != 0;
}

/// However a connection ends, its reply is abandoned.
class ReplyGuard {
 public:
  explicit ReplyGuard(Reply& reply) : reply_(reply) {}
  ~ReplyGuard() { reply_.abandon(); }
  ReplyGuard(const ReplyGuard&) = delete;
  ReplyGuard& operator=(const ReplyGuard&) = delete;

 private:
  Reply& reply_;
};

template <class Stream>
class Connection {
 public:
  Connection(Stream& stream, ConnectionContext& context, std::atomic<bool>& waiting)
      : stream_(stream), context_(context), limits_(context.config.limits), waiting_(waiting) {}

  asio::awaitable<void> run() {
    for (bool is_first = true; !context_.draining; is_first = false) {
      Parser parser;
      parser.header_limit(limits_.header_bytes);
      parser.body_limit(limits_.body_bytes);
      waiting_ = true;
      timeout(is_first ? limits_.header_s : limits_.idle_s);
      const auto [header_error, header_size] =
          co_await http::async_read_header(stream_, buffer_, parser, kAwait);
      waiting_ = false;
      begun_ = Clock::now();
      if (!header_error) co_await invite_body(parser);
      beast::error_code error = header_error;
      if (!error) {
        timeout(limits_.body_s);
        const auto [body_error, body_size] =
            co_await http::async_read(stream_, buffer_, parser, kAwait);
        error = body_error;
      }
      if (error) {
        co_await refuse(error, parser);
        co_return;
      }
      if (!co_await answer(parser.release())) co_return;
    }
  }

 private:
  using Parser = http::request_parser<http::string_body>;
  using Request = http::request<http::string_body>;

  void timeout(double value) { beast::get_lowest_layer(stream_).expires_after(seconds(value)); }

  asio::awaitable<void> invite_body(Parser& parser) {
    if (!beast::iequals(parser.get()[http::field::expect], "100-continue")) co_return;
    http::response<http::empty_body> invitation(http::status::continue_, 11);
    co_await http::async_write(stream_, invitation, kAwait);
  }

  /// What is wrong with the HTTP itself is told where anybody can still hear it.
  asio::awaitable<void> refuse(beast::error_code error, const Parser& parser) {
    ApiError fault{.message = fmt::format("this is not HTTP: {}", error.message())};
    if (error == http::error::header_limit || error == http::error::buffer_overflow) {
      fault = {.status = 431,
               .message = fmt::format("the header has more than {} bytes", limits_.header_bytes)};
    } else if (error == http::error::body_limit) {
      fault = {.status = 413,
               .message = fmt::format("the body has more than {} bytes", limits_.body_bytes)};
    } else if (error.category() != make_error_code(http::error::bad_method).category() ||
               error == http::error::end_of_stream || error == http::error::partial_message) {
      co_return;  // gone, or too slow
    }
    Line line = line_for(parser.get());
    const auto reply = make_reply(fault);
    co_await write_whole(*reply->take(), {.version = 11, .keep_alive = false}, line);
    finish(line, nullptr);
  }

  struct Manner {
    unsigned version = 11;
    bool keep_alive = true;
  };
  using Line = RequestLine;

  Line line_for(const Request& request) {
    const std::string_view given = request["x-request-id"];
    Line line{
        .id = is_request_id(given)
                  ? std::string(given)
                  : fmt::format("{:016x}",
                                Random(context_.chance).bits(context_.next_request.fetch_add(1))),
        .method = std::string(request.method_string()),
        .target = std::string(request.target())};
    return line;
  }

  /// False when the connection is over.
  asio::awaitable<bool> answer(Request request) {
    const Manner manner{.version = request.version(),
                        .keep_alive = request.keep_alive() && !context_.draining};
    Line line = line_for(request);
    const auto reply = handle({.id = line.id,
                               .method = line.method,
                               .target = line.target,
                               .authorization = std::string(request[http::field::authorization]),
                               .body = std::move(request.body())});
    const ReplyGuard guard(*reply);
    const bool goes_on = co_await write_reply(*reply, manner, line);
    finish(line, reply.get());
    co_return goes_on;
  }

  std::shared_ptr<Reply> handle(const HttpRequest& request) {
    try {
      return context_.handler.handle(request);
    } catch (const std::exception& fault) {
      return make_reply(ApiError{.status = 500, .message = fault.what()});
    }
  }

  void finish(Line& line, const Reply* reply) {
    if (!context_.config.log) return;
    line.duration_ms = std::chrono::duration<double, std::milli>(Clock::now() - begun_).count();
    if (reply) line.summary = reply->summary();
    context_.config.log(to_json(line));
  }

  /// Nothing when the client has gone or the time is over.
  asio::awaitable<std::optional<Piece>> next_piece(Reply& reply, asio::steady_timer& timer,
                                                   Clock::time_point deadline) {
    beast::get_lowest_layer(stream_).expires_never();
    auto checked = Clock::now();
    while (true) {
      if (auto piece = reply.take()) co_return piece;
      const auto now = Clock::now();
      if (now >= deadline) co_return std::nullopt;
      if (now - checked >= kPresenceCheck) {
        if (is_gone(beast::get_lowest_layer(stream_).socket().native_handle())) {
          co_return std::nullopt;
        }
        checked = now;
      }
      timer.expires_after(kPresenceCheck);
      co_await timer.async_wait(kAwait);
    }
  }

  asio::awaitable<bool> write_reply(Reply& reply, Manner manner, Line& line) {
    const auto executor = co_await asio::this_coro::executor;
    const auto timer = std::make_shared<asio::steady_timer>(executor);
    reply.on_ready([executor, timer] { asio::post(executor, [timer] { timer->cancel(); }); });
    auto piece = co_await next_piece(reply, *timer, Clock::now() + seconds(limits_.first_byte_s));
    if (!piece) {
      line.outcome = "abandoned";
      co_return false;
    }
    if (piece->is_last) co_return co_await write_whole(std::move(*piece), manner, line);
    if (!co_await write_head(*piece->head, manner, line)) co_return false;
    while (true) {
      if (!co_await write_chunk(piece->body, manner, line)) co_return false;
      if (piece->is_last) break;
      piece = co_await next_piece(reply, *timer, Clock::time_point::max());
      if (!piece) {
        line.outcome = "abandoned";
        co_return false;
      }
    }
    if (manner.version < 11) co_return false;
    timeout(limits_.write_s);
    const auto [error, size] = co_await asio::async_write(stream_, http::make_chunk_last(), kAwait);
    co_return !error && manner.keep_alive;
  }

  template <class Body>
  void set_head(http::response<Body>& response, const HttpHead& head, const Line& line) {
    response.set(http::field::server, "gauntlet");
    response.set(http::field::content_type, head.content_type);
    response.set("x-request-id", line.id);
    for (const auto& [name, value] : head.headers) response.set(name, value);
  }

  asio::awaitable<bool> write_whole(Piece piece, Manner manner, Line& line) {
    line.status = piece.head->status;
    line.bytes = std::ssize(piece.body);
    http::response<http::string_body> response(static_cast<http::status>(piece.head->status),
                                               manner.version, std::move(piece.body));
    set_head(response, *piece.head, line);
    response.keep_alive(manner.keep_alive);
    response.prepare_payload();
    timeout(limits_.write_s);
    const auto [error, size] = co_await http::async_write(stream_, response, kAwait);
    if (error) line.outcome = "abandoned";
    co_return !error && manner.keep_alive;
  }

  asio::awaitable<bool> write_head(const HttpHead& head, Manner manner, Line& line) {
    line.status = head.status;
    http::response<http::empty_body> response(static_cast<http::status>(head.status),
                                              manner.version);
    set_head(response, head, line);
    response.keep_alive(manner.keep_alive && manner.version >= 11);
    if (manner.version >= 11) response.chunked(true);
    http::response_serializer<http::empty_body> serializer(response);
    timeout(limits_.write_s);
    const auto [error, size] = co_await http::async_write_header(stream_, serializer, kAwait);
    if (error) line.outcome = "abandoned";
    co_return !error;
  }

  asio::awaitable<bool> write_chunk(const std::string& body, Manner manner, Line& line) {
    if (body.empty()) co_return true;
    timeout(limits_.write_s);
    beast::error_code error;
    if (manner.version >= 11) {
      const auto [failed, size] =
          co_await asio::async_write(stream_, http::make_chunk(asio::buffer(body)), kAwait);
      error = failed;
    } else {
      const auto [failed, size] = co_await asio::async_write(stream_, asio::buffer(body), kAwait);
      error = failed;
    }
    line.bytes += std::ssize(body);
    if (error) line.outcome = "abandoned";
    co_return !error;
  }

  Stream& stream_;
  ConnectionContext& context_;
  const HttpLimits& limits_;
  std::atomic<bool>& waiting_;
  beast::flat_buffer buffer_;
  Clock::time_point begun_;
};

}  // namespace

asio::awaitable<void> serve_connection(asio::ip::tcp::socket& socket, ConnectionContext& context,
                                       std::atomic<bool>& waiting) {
  beast::error_code ignored;
  socket.set_option(asio::ip::tcp::no_delay(true), ignored);
  const HttpLimits& limits = context.config.limits;
  if (!context.tls) {
    beast::tcp_stream stream(std::move(socket));
    co_await Connection<beast::tcp_stream>(stream, context, waiting).run();
    stream.socket().shutdown(asio::ip::tcp::socket::shutdown_send, ignored);
    co_return;
  }
  beast::ssl_stream<beast::tcp_stream> stream(std::move(socket), *context.tls);
  beast::get_lowest_layer(stream).expires_after(seconds(limits.header_s));
  const auto [error] = co_await stream.async_handshake(asio::ssl::stream_base::server, kAwait);
  if (error) co_return;
  co_await Connection<beast::ssl_stream<beast::tcp_stream>>(stream, context, waiting).run();
  beast::get_lowest_layer(stream).expires_after(seconds(limits.write_s));
  co_await stream.async_shutdown(kAwait);
}

}  // namespace gauntlet::server
