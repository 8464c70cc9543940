#include "server/connection.h"

#include <fmt/format.h>
#include <netinet/tcp.h>
#include <poll.h>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/core/read_size.hpp>
#include <boost/beast/http/error.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/string_body.hpp>
#include <chrono>

#include "core/random.h"
#include "server/request_log.h"
#include "server/response_head.h"
#include "server/transport.h"

namespace gauntlet::server {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = beast::http;
using Clock = std::chrono::steady_clock;

constexpr auto kPresenceCheck = std::chrono::milliseconds(100);
constexpr std::size_t kReadBytes = 64 << 10;
/// Parsing takes about 10 ns per byte: longer than this, and streams would be seen to stop.
constexpr std::size_t kLargeBody = 64 << 10;

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

/// What wakes a connection that waits for its reply; both wakers run on its strand.
struct Pulse {
  explicit Pulse(const asio::any_io_executor& executor) : timer(executor) {}
  asio::steady_timer timer;
  bool client_stirred = false;  // it closed, or sent more
  bool is_ready = true;         // there may be something to take
  /// Every piece costs system calls and its reader's attention: those that follow one another
  /// faster than anybody reads wait until now, and go together.
  Clock::time_point earliest = Clock::time_point::min();
};

/// When the host at the other end vanishes, data on its way is given up after this long.
void give_up_unacknowledged(asio::ip::tcp::socket& socket, double limit_s) {
  const auto limit_ms = static_cast<unsigned>(limit_s * 1e3);
  setsockopt(socket.native_handle(), IPPROTO_TCP, TCP_USER_TIMEOUT, &limit_ms, sizeof(limit_ms));
}

class Connection {
 public:
  Connection(Transport& transport, ConnectionContext& context, std::atomic<bool>& waiting)
      : transport_(transport),
        context_(context),
        limits_(context.config.limits),
        waiting_(waiting),
        buffer_(limits_.header_bytes + kReadBytes) {}

  asio::awaitable<void> run() {
    for (bool is_first = true; !context_.draining; is_first = false) {
      Parser parser;
      parser.header_limit(limits_.header_bytes);
      parser.body_limit(limits_.body_bytes);
      waiting_ = true;
      timeout(is_first ? limits_.header_s : limits_.idle_s);
      beast::error_code error;
      while (!error && !parser.is_header_done()) error = co_await parse_some(parser);
      waiting_ = false;
      begun_ = Clock::now();
      BodyBudget::Share share(context_.bodies);
      if (!error) error = co_await read_body(parser, share);
      if (error) {
        co_await refuse(error, parser);
        co_return;
      }
      if (!co_await answer(parser.release(), share)) co_return;
    }
  }

 private:
  using Parser = http::request_parser<http::string_body>;
  using Request = http::request<http::string_body>;

  void timeout(double value) { transport_.expires_after(seconds(value)); }

  /// Parses what is there, or what comes next.
  asio::awaitable<beast::error_code> parse_some(Parser& parser) {
    beast::error_code error;
    while (true) {
      if (buffer_.size() > 0) {
        buffer_.consume(parser.put(buffer_.data(), error));
        if (error != http::error::need_more) co_return error;
        error = {};
      }
      const std::size_t room = beast::read_size(buffer_, kReadBytes);
      if (room == 0) co_return http::make_error_code(http::error::buffer_overflow);
      const auto read = co_await transport_.read_some(buffer_.prepare(room));
      buffer_.commit(read.bytes);
      if (read.error == asio::error::eof) {
        if (!parser.got_some()) co_return http::make_error_code(http::error::end_of_stream);
        parser.put_eof(error);
        co_return error;
      }
      if (read.error) co_return read.error;
    }
  }

  /// no_buffer_space when the bodies of all connections take too much.
  asio::awaitable<beast::error_code> read_body(Parser& parser, BodyBudget::Share& share) {
    timeout(limits_.body_s);
    if (beast::iequals(parser.get()[http::field::expect], "100-continue")) {
      // A variable: GCC 12 refuses arrays that are made under co_await.
      const Transport::Parts invitation = {
          asio::buffer(std::string_view("HTTP/1.1 100 Continue\r\n\r\n"))};
      const auto error = co_await transport_.write(invitation);
      if (error) co_return error;
    }
    const bool is_whole = parser.is_done();
    if (!is_whole) buffer_.reserve(kReadBytes);
    parser.eager(true);
    while (!parser.is_done()) {
      const auto error = co_await parse_some(parser);
      if (error) co_return error;
      if (!share.grow_to(parser.get().body().size())) {
        co_return beast::error_code(asio::error::no_buffer_space);
      }
    }
    if (!is_whole) buffer_.shrink_to_fit();
    co_return beast::error_code();
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
    } else if (error == asio::error::no_buffer_space) {
      fault = {.status = 503,
               .message = "the bodies of all requests under way take too much memory",
               .retry_after_s = 1};
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
    bool has_body = true;
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
  asio::awaitable<bool> answer(Request request, BodyBudget::Share& share) {
    const Manner manner{.version = request.version(),
                        .keep_alive = request.keep_alive() && !context_.draining,
                        .has_body = request.method() != http::verb::head};
    Line line = line_for(request);
    HttpRequest asked{.id = line.id,
                      .method = line.method,
                      .target = line.target,
                      .authorization = std::string(request[http::field::authorization]),
                      .body = std::move(request.body())};
    std::shared_ptr<Reply> reply;
    if (asked.body.size() <= kLargeBody) {
      reply = handle(asked);
    } else {
      reply = co_await asio::co_spawn(context_.aside, handle_aside(asked), asio::use_awaitable);
    }
    asked.body = {};
    share.release();
    bool goes_on = false;
    {
      const ReplyGuard guard(*reply);
      goes_on = co_await write_reply(*reply, manner, line);
    }
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

  asio::awaitable<std::shared_ptr<Reply>> handle_aside(const HttpRequest& request) {
    co_return handle(request);
  }

  void finish(Line& line, const Reply* reply) {
    if (!context_.config.log) return;
    line.duration_ms = std::chrono::duration<double, std::milli>(Clock::now() - begun_).count();
    if (reply) line.summary = reply->summary();
    context_.config.log(to_json(line));
  }

  void watch_client(const std::shared_ptr<Pulse>& pulse) {
    socket().async_wait(asio::ip::tcp::socket::wait_read, [pulse](beast::error_code error) {
      if (error) return;
      pulse->client_stirred = true;
      pulse->timer.cancel();
    });
  }

  /// Nothing when the client has gone. A reply that does not begin in time becomes an error.
  asio::awaitable<std::optional<Piece>> next_piece(Reply& reply, Pulse& pulse,
                                                   Clock::time_point deadline) {
    transport_.expires_never();
    while (true) {
      if (Clock::now() >= pulse.earliest) {
        if (auto piece = reply.take()) co_return piece;
        pulse.is_ready = false;
      }
      if (pulse.client_stirred && is_gone(socket().native_handle())) co_return std::nullopt;
      const auto now = Clock::now();
      if (now >= deadline) {
        const ApiError late{
            .status = 503,
            .message = fmt::format("no answer began within {} s", limits_.first_byte_s),
            .retry_after_s = 1};
        co_return Piece{.head = head_of(late), .body = to_json(late), .is_last = true};
      }
      // What a client sent ahead hides its end, which then has to be asked for.
      const auto until = pulse.client_stirred ? std::min(deadline, now + kPresenceCheck) : deadline;
      pulse.timer.expires_at(pulse.is_ready ? std::min(until, pulse.earliest) : until);
      co_await pulse.timer.async_wait(kAwait);
    }
  }

  asio::awaitable<bool> write_reply(Reply& reply, Manner manner, Line& line) {
    if (auto ready = reply.take(); ready && ready->is_last) {
      co_return co_await write_whole(std::move(*ready), manner, line);
    } else {
      co_return co_await write_pieces(reply, std::move(ready), manner, line);
    }
  }

  asio::awaitable<bool> write_pieces(Reply& reply, std::optional<Piece> piece, Manner manner,
                                     Line& line) {
    const auto executor = co_await asio::this_coro::executor;
    const auto pulse = std::make_shared<Pulse>(executor);
    reply.on_ready([executor, pulse] {
      asio::post(executor, [pulse] {
        pulse->is_ready = true;
        pulse->timer.cancel();
      });
    });
    watch_client(pulse);
    if (!piece) {
      piece = co_await next_piece(reply, *pulse, Clock::now() + seconds(limits_.first_byte_s));
    }
    bool goes_on = false;
    if (piece && piece->is_last) {
      goes_on = co_await write_whole(std::move(*piece), manner, line);
    } else if (piece && co_await write_head(*piece->head, manner, line)) {
      while (piece && co_await write_chunk(*piece, manner, line)) {
        if (piece->is_last) {
          goes_on = manner.keep_alive && manner.version >= 11;
          break;
        }
        pulse->is_ready = true;
        pulse->earliest = Clock::now() + seconds(context_.config.stream_interval_s);
        piece = co_await next_piece(reply, *pulse, Clock::time_point::max());
      }
    }
    if (!piece) line.outcome = "abandoned";
    beast::error_code ignored;
    socket().cancel(ignored);  // the watch
    co_return goes_on;
  }

  asio::awaitable<bool> write_whole(Piece piece, Manner manner, Line& line) {
    line.status = piece.head->status;
    line.bytes = std::ssize(piece.body);
    const std::string head = response_head(*piece.head, line.id,
                                           {.version = manner.version,
                                            .keep_alive = manner.keep_alive,
                                            .body_bytes = piece.body.size()});
    const std::string_view body = manner.has_body ? std::string_view(piece.body) : "";
    const Transport::Parts parts = {asio::buffer(head), asio::buffer(body)};
    if (!co_await write(parts, line)) co_return false;
    co_return manner.keep_alive;
  }

  asio::awaitable<bool> write_head(const HttpHead& head, Manner manner, Line& line) {
    line.status = head.status;
    const std::string lines = response_head(
        head, line.id,
        {.version = manner.version, .keep_alive = manner.keep_alive && manner.version >= 11});
    const Transport::Parts parts = {asio::buffer(lines)};
    co_return co_await write(parts, line);
  }

  asio::awaitable<bool> write_chunk(const Piece& piece, Manner manner, Line& line) {
    const std::string& body = piece.body;
    line.bytes += std::ssize(body);
    // A chunk of nothing would end the reply.
    if (body.empty() && !piece.is_last) co_return true;
    std::string size;
    std::string_view end;
    if (manner.version >= 11 && body.empty()) {
      end = "0\r\n\r\n";
    } else if (manner.version >= 11) {
      size = fmt::format("{:x}\r\n", body.size());
      end = piece.is_last ? "\r\n0\r\n\r\n" : "\r\n";
    }
    const Transport::Parts parts = {asio::buffer(size), asio::buffer(body), asio::buffer(end)};
    co_return co_await write(parts, line);
  }

  asio::awaitable<bool> write(const Transport::Parts& parts, Line& line) {
    timeout(limits_.write_s);
    const auto error = co_await transport_.write(parts);
    if (error) line.outcome = "abandoned";
    co_return !error;
  }

  asio::ip::tcp::socket& socket() { return transport_.socket(); }

  Transport& transport_;
  ConnectionContext& context_;
  const HttpLimits& limits_;
  std::atomic<bool>& waiting_;
  beast::flat_buffer buffer_;  // bounded: the parser limits neither trailers nor chunk extensions
  Clock::time_point begun_;
};

}  // namespace

asio::awaitable<void> serve_connection(asio::ip::tcp::socket& socket, ConnectionContext& context,
                                       std::atomic<bool>& waiting) {
  beast::error_code ignored;
  socket.set_option(asio::ip::tcp::no_delay(true), ignored);
  const HttpLimits& limits = context.config.limits;
  give_up_unacknowledged(socket, limits.write_s);
  Transport transport(std::move(socket), context.tls);
  if (context.tls != nullptr) {
    transport.expires_after(seconds(limits.header_s));
    const auto error = co_await transport.handshake();
    waiting = false;  // until the first request is waited for: the socket may be gone
    if (error) co_return;
  }
  co_await Connection(transport, context, waiting).run();
  transport.expires_after(seconds(limits.write_s));
  co_await transport.close();
}

}  // namespace gauntlet::server
