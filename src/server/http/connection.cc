#include "server/http/connection.h"

#include <fmt/format.h>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <chrono>

#include "core/random.h"
#include "server/http/on_worker.h"
#include "server/http/presence.h"
#include "server/http/request_log.h"
#include "server/http/transport.h"
#include "server/http/wire/chunk_frame.h"
#include "server/http/wire/request_reader.h"
#include "server/http/wire/response_head.h"
#include "server/http/write_turns.h"

namespace gauntlet::server::inline http {
namespace {

namespace asio = boost::asio;
using error_code = boost::system::error_code;
using Clock = std::chrono::steady_clock;

constexpr auto kPresenceCheck = std::chrono::milliseconds(100);
constexpr auto kProbeInterval = std::chrono::seconds(5);
/// A socket that is full for this long has a reader who is too slow; for less, one who paused.
constexpr auto kBlocked = std::chrono::seconds(1);
/// What may be put together where bytes are moved: it takes less than a millisecond.
constexpr std::size_t kSmallEffort = 16 << 10;
/// After a piece of this size others have their turn, however fast it was taken.
constexpr std::size_t kLargePiece = 64 << 10;

std::chrono::nanoseconds seconds(double value) {
  return std::chrono::nanoseconds(static_cast<std::int64_t>(value * 1e9));
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
  bool client_stirred = false;                  // it closed, or sent more
  bool is_ready = true;                         // there may be something to take
  std::atomic<bool> will_look = false;          // when `earliest` comes: nobody need wake it
  Reply* written = nullptr;                     // while a piece of it is on its way
  std::optional<Clock::time_point> full_since;  // as far as was looked, the socket, of this piece

  /// Looks whether the socket takes bytes, here and now: while this thread was busy, nobody was
  /// slow.
  void look_at_reader(int handle) {
    if (!written) return;
    if (takes_bytes(handle)) {
      full_since.reset();
    } else if (!full_since) {
      full_since = Clock::now();
    } else if (Clock::now() - *full_since >= kBlocked) {
      written->reader_is_blocked();
    }
  }
  /// Every piece costs system calls and its reader's attention: those that follow one another
  /// faster than anybody reads wait until now, and go together.
  Clock::time_point earliest = Clock::time_point();
  Clock::time_point next_probe = Clock::time_point::min();
};

class Connection {
 public:
  Connection(Transport& transport, ConnectionContext& context, std::atomic<bool>& waiting)
      : transport_(transport),
        context_(context),
        limits_(context.config.limits),
        waiting_(waiting),
        reader_(transport, limits_),
        address_(neighbourhood_of(transport.socket())) {}

  asio::awaitable<void> run() {
    // Whoever connects while the server drains is told so, once.
    for (bool is_first = true; is_first || !context_.draining; is_first = false) {
      waiting_ = true;
      timeout(is_first ? limits_.header_s : limits_.idle_s);
      RequestHead head;
      const auto fault = co_await reader_.read_head(head);
      waiting_ = false;
      begun_ = Clock::now();
      if (fault) {
        Line line = line_for(head);
        const Manner manner{.keep_alive = false};
        co_await refuse(*fault, manner, line);
        co_return;
      }
      if (!co_await serve(head)) co_return;
    }
  }

 private:
  using Line = RequestLine;
  /// What asks a client whether it is there; empty: nothing can. None: it has left.
  using Probe = std::optional<std::string_view>;
  struct Manner {
    unsigned version = 11;
    bool keep_alive = true;
    bool has_body = true;
    AccessRules::Headers headers = {};
  };

  void timeout(double value) { transport_.expires_after(seconds(value)); }

  Line line_for(const RequestHead& head) {
    const std::string_view given = head.field("x-request-id");
    return {.id = is_request_id(given) ? std::string(given) : new_request_id(context_),
            .method = head.method,
            .target = head.target};
  }

  /// What is wrong with the HTTP itself is told where anybody can still hear it.
  asio::awaitable<void> refuse(const RequestReader::Fault& fault, const Manner& manner,
                               Line& line) {
    if (!fault.told) co_return;
    auto piece = make_reply(*fault.told)->take();
    co_await write_whole(std::move(*piece), manner, line);
    finish(line, nullptr);
  }

  /// False when the connection is over.
  asio::awaitable<bool> serve(const RequestHead& head) {
    Manner manner{.version = head.version,
                  .keep_alive = head.keep_alive && !context_.draining,
                  .has_body = head.method != "HEAD",
                  .headers = context_.access.reply_headers(head)};
    Line line = line_for(head);
    HttpRequest asked{.id = line.id,
                      .method = line.method,
                      .target = line.target,
                      .authorization = std::string(head.field("authorization")),
                      .body = {}};
    Admission admission = admit(head, asked);
    client_ = client_of(admission);
    line.account = admission.account;
    std::shared_ptr<Reply> reply = std::move(admission.refusal);
    const auto executor = co_await asio::this_coro::executor;
    BodyBudget::Share share(context_.bodies, interrupter(executor));
    std::size_t body_bytes = 0;
    if (reply) {
      // A body that nobody asked for is not worth waiting for.
      manner.keep_alive = manner.keep_alive && !head.has_body();
    } else {
      const auto fault = co_await read_body(head, share, asked.body);
      if (fault) {
        manner.keep_alive = false;
        co_await refuse(*fault, manner, line);
        context_.workers->note_freed(asked.body.size());
        co_return false;
      }
      body_bytes = asked.body.size();
      reply = co_await handle(asked, admission.work);
    }
    share.release();
    bool goes_on = false;
    {
      const ReplyGuard guard(*reply);
      goes_on = co_await write_reply(*reply, manner, line);
    }
    finish(line, reply.get());
    reply.reset();
    context_.workers->note_freed(body_bytes + static_cast<std::size_t>(line.bytes));
    co_return goes_on;
  }

  /// Where it is refused, that needs no body.
  Admission admit(const RequestHead& head, const HttpRequest& asked) {
    if (const auto error = context_.access.check_host(head)) return {.refusal = make_reply(*error)};
    if (auto preflight = context_.access.answer_preflight(head)) return {.refusal = preflight};
    try {
      return context_.handler.admit(asked);
    } catch (const std::exception& fault) {
      return {.refusal = make_reply(ApiError{.status = 500, .message = fault.what()})};
    }
  }

  WorkPool::Client client_of(const Admission& admission) const {
    if (admission.account.empty()) return {.name = "at " + address_};
    return {.name = "key " + admission.account, .share = admission.share};
  }

  /// What a share calls when it goes to others: any thread, and perhaps after the body was read.
  std::function<void()> interrupter(const asio::any_io_executor& executor) {
    return [this, executor, alive = std::weak_ptr<char>(alive_)] {
      asio::post(executor, [this, alive] {
        if (alive.lock()) reader_.interrupt_body();
      });
    };
  }

  asio::awaitable<std::optional<RequestReader::Fault>> read_body(const RequestHead& head,
                                                                 BodyBudget::Share& share,
                                                                 std::string& body) {
    timeout(limits_.body_s);
    const bool will_fit = head.content_length.value_or(0) <= limits_.body_bytes;
    if (head.expects_continue && will_fit) {
      // A variable: GCC 12 refuses arrays that are made under co_await.
      const Transport::Parts invitation = {asio::buffer(kContinue)};
      if (co_await transport_.write(invitation)) co_return RequestReader::Fault{};
    }
    co_return co_await reader_.read_body(head, share, body);
  }

  /// Its body is gone afterwards.
  asio::awaitable<std::shared_ptr<Reply>> handle(HttpRequest& request, Admission::Work work) {
    std::shared_ptr<Reply> reply;
    const auto call = [&] {
      try {
        reply = context_.handler.handle(request);
      } catch (const std::exception& fault) {
        reply = make_reply(ApiError{.status = 500, .message = fault.what()});
      }
      std::string().swap(request.body);
    };
    if (work == Admission::Work::quick) {
      call();
      co_return reply;
    }
    WorkPool::Job job{
        .client = client_, .weight_bytes = context_.handler.weight(request), .run = {}};
    const auto posted = co_await on_worker(*context_.workers, std::move(job), call);
    if (posted != WorkPool::Posted::yes) reply = refuse_work(posted);
    co_return reply;
  }

  static std::shared_ptr<Reply> refuse_work(WorkPool::Posted posted) {
    if (posted == WorkPool::Posted::queue_is_full) {
      return make_reply(ApiError{.status = 503,
                                 .message = "too many requests wait to be read: try again later",
                                 .retry_after_s = 1});
    }
    return make_reply(ApiError{.status = 429,
                               .message = "too many requests of this client wait to be read: try "
                                          "again later",
                               .code = "queue_full",
                               .retry_after_s = 1});
  }

  /// What takes long to be put together is by a worker.
  asio::awaitable<std::optional<Piece>> take(Reply& reply) {
    const std::size_t effort = reply.effort();
    if (effort <= kSmallEffort) co_return reply.take();
    co_return co_await take_by_worker(reply, effort);
  }

  asio::awaitable<std::optional<Piece>> take_by_worker(Reply& reply, std::size_t effort) {
    std::optional<Piece> piece;
    WorkPool::Job job{
        .client = client_, .weight_bytes = effort, .stage = WorkPool::Job::Stage::next, .run = {}};
    const auto work = [&] { piece = reply.take(); };
    co_await on_worker(*context_.workers, std::move(job), work);
    co_return piece;
  }

  void finish(Line& line, const Reply* reply) {
    if (!context_.config.log) return;
    line.duration_ms = std::chrono::duration<double, std::milli>(Clock::now() - begun_).count();
    if (reply) line.summary = reply->summary();
    context_.config.log(to_json(line));
  }

  void watch_client(const std::shared_ptr<Pulse>& pulse) {
    socket().async_wait(asio::ip::tcp::socket::wait_read, [pulse](error_code error) {
      if (error) return;
      pulse->client_stirred = true;
      pulse->timer.cancel();
    });
  }

  /// Nothing when the client has gone. A reply that does not begin in time becomes an error.
  asio::awaitable<std::optional<Piece>> next_piece(Reply& reply, Pulse& pulse,
                                                   Clock::time_point deadline, Probe probe) {
    while (true) {
      if (Clock::now() >= pulse.earliest) {
        pulse.is_ready = false;  // and may be true again when this comes back
        pulse.will_look = false;
        // As take(), but once per piece of a stream another coroutine is worth avoiding.
        const std::size_t effort = reply.effort();
        std::optional<Piece> piece;
        if (effort <= kSmallEffort) {
          piece = reply.take();
        } else {
          piece = co_await take_by_worker(reply, effort);
        }
        if (piece) co_return piece;
      }
      if (pulse.client_stirred && !co_await is_still_there(pulse, probe)) co_return std::nullopt;
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

  /// A client that closed and one that merely sends no more look alike until something is written:
  /// the first answers it with a reset.
  asio::awaitable<bool> is_still_there(Pulse& pulse, Probe probe) {
    const Presence presence = presence_of(socket().native_handle());
    if (presence == Presence::there) co_return true;
    if (presence == Presence::gone || !probe) co_return false;
    if (probe->empty() || Clock::now() < pulse.next_probe) co_return true;
    pulse.next_probe = Clock::now() + kProbeInterval;
    timeout(limits_.write_s);
    const Transport::Parts parts = {asio::buffer(*probe)};
    co_return !co_await transport_.write(parts);
  }

  /// Bytes that change nothing: before a reply an interim one, within events a comment. HTTP/1.0
  /// has no interim replies, so there a client that sends no more is taken to have left.
  static Probe probe_before(const Manner& manner) {
    return manner.version >= 11 ? Probe(kContinue) : std::nullopt;
  }
  /// Where comments have no place, the next piece will tell.
  static Probe probe_within(const HttpHead& head, const Manner& manner) {
    if (!head.content_type.starts_with("text/event-stream")) return std::string_view();
    return std::string_view(manner.version >= 11 ? "3\r\n:\n\n\r\n" : ":\n\n");
  }

  asio::awaitable<bool> write_reply(Reply& reply, const Manner& manner, Line& line) {
    if (auto ready = co_await take(reply); ready && ready->is_last) {
      co_return co_await write_whole(std::move(*ready), manner, line);
    } else {
      co_return co_await write_pieces(reply, std::move(ready), manner, line);
    }
  }

  asio::awaitable<bool> write_pieces(Reply& reply, std::optional<Piece> piece, const Manner& manner,
                                     Line& line) {
    const auto executor = co_await asio::this_coro::executor;
    const auto pulse = std::make_shared<Pulse>(executor);
    const int handle = socket().native_handle();
    reply.on_ready([executor, pulse, handle] {
      if (pulse->will_look) return;
      asio::post(executor, [pulse, handle] {
        pulse->is_ready = true;
        pulse->timer.cancel();
        pulse->look_at_reader(handle);
      });
    });
    watch_client(pulse);
    transport_.expires_never();
    if (!piece) {
      piece = co_await next_piece(reply, *pulse, Clock::now() + seconds(limits_.first_byte_s),
                                  probe_before(manner));
    }
    bool goes_on = false;
    if (piece && piece->is_last) {
      goes_on = co_await write_whole(std::move(*piece), manner, line);
    } else if (piece && co_await write_head(*piece->head, manner, line)) {
      goes_on = co_await write_chunks(reply, *pulse, std::move(*piece), manner, line);
    } else if (!piece) {
      line.outcome = "abandoned";
    }
    error_code ignored;
    socket().cancel(ignored);  // the watch
    co_return goes_on;
  }

  asio::awaitable<bool> write_chunks(Reply& reply, Pulse& pulse, Piece piece, const Manner& manner,
                                     Line& line) {
    if (!manner.has_body) co_return false;
    const auto executor = co_await asio::this_coro::executor;
    const Probe probe = probe_within(*piece.head, manner);
    const WriteTurns turns(seconds(context_.config.stream_interval_s));
    while (true) {
      const ChunkFrame frame(piece, manner.version);
      Transport::Parts parts = {asio::buffer(frame.before()), asio::buffer(piece.body),
                                asio::buffer(frame.after())};
      line.bytes += std::ssize(piece.body);
      pulse.written = &reply;
      pulse.full_since.reset();
      auto error = transport_.write_at_once(parts);
      if (!error) error = co_await write_in_time(parts);
      pulse.written = nullptr;
      if (*error) {
        line.outcome = "abandoned";
        co_return false;
      }
      if (piece.is_last) co_return manner.keep_alive&& manner.version >= 11;
      if (piece.body.size() >= kLargePiece) {
        co_await asio::post(executor, asio::use_awaitable);
      }
      pulse.is_ready = true;
      pulse.earliest = turns.next(pulse.earliest, Clock::now());
      pulse.will_look = true;
      auto next = co_await next_piece(reply, pulse, Clock::time_point::max(), probe);
      if (!next) {
        line.outcome = "abandoned";
        co_return false;
      }
      piece = std::move(*next);
    }
  }

  asio::awaitable<bool> write_whole(Piece piece, const Manner& manner, Line& line) {
    line.status = piece.head->status;
    line.bytes = std::ssize(piece.body);
    const std::string head = response_head(with_headers(*piece.head, manner), line.id,
                                           {.version = manner.version,
                                            .keep_alive = manner.keep_alive,
                                            .body_bytes = piece.body.size()});
    const std::string_view body = manner.has_body ? std::string_view(piece.body) : "";
    const Transport::Parts parts = {asio::buffer(head), asio::buffer(body)};
    if (!co_await write(parts, line)) co_return false;
    co_return manner.keep_alive;
  }

  asio::awaitable<bool> write_head(const HttpHead& head, const Manner& manner, Line& line) {
    line.status = head.status;
    const std::string lines = response_head(
        with_headers(head, manner), line.id,
        {.version = manner.version, .keep_alive = manner.keep_alive && manner.version >= 11});
    const Transport::Parts parts = {asio::buffer(lines)};
    co_return co_await write(parts, line);
  }

  static HttpHead with_headers(HttpHead head, const Manner& manner) {
    head.headers.insert(head.headers.end(), manner.headers.begin(), manner.headers.end());
    return head;
  }

  asio::awaitable<bool> write(const Transport::Parts& parts, Line& line) {
    const auto error = co_await write_in_time(parts);
    if (error) line.outcome = "abandoned";
    co_return !error;
  }

  asio::awaitable<error_code> write_in_time(const Transport::Parts& parts) {
    timeout(limits_.write_s);
    co_return co_await transport_.write(parts);
  }

  static constexpr std::string_view kContinue = "HTTP/1.1 100 Continue\r\n\r\n";

  asio::ip::tcp::socket& socket() { return transport_.socket(); }

  Transport& transport_;
  ConnectionContext& context_;
  const HttpLimits& limits_;
  std::atomic<bool>& waiting_;
  RequestReader reader_;
  const std::string address_;  // of the client
  WorkPool::Client client_;    // as the workers know it
  const std::shared_ptr<char> alive_ = std::make_shared<char>();
  Clock::time_point begun_;
};

}  // namespace

std::string new_request_id(ConnectionContext& context) {
  return fmt::format("{:016x}", Random(context.chance).bits(context.next_request.fetch_add(1)));
}

asio::awaitable<void> serve_connection(asio::ip::tcp::socket& socket, ConnectionContext& context,
                                       std::atomic<bool>& waiting) {
  error_code ignored;
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

}  // namespace gauntlet::server::inline http
