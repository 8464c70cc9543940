#include "load/http/client.h"

#include <fmt/format.h>
#include <sys/resource.h>

#include <algorithm>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/post.hpp>
#include <cmath>
#include <unordered_set>

#include "core/check.h"
#include "load/http/await.h"
#include "load/http/exchange.h"
#include "load/http/stream_sink.h"

namespace gauntlet::load::inline http {
namespace {

namespace asio = boost::asio;
using boost::system::error_code;
using tcp = asio::ip::tcp;

/// A fault of ours ends the run, not one coroutine.
constexpr auto kRethrow = [](const std::exception_ptr& fault) {
  if (fault) std::rethrow_exception(fault);
};
constexpr auto kTick = std::chrono::milliseconds(250);

Clock::duration duration_of(double seconds) {
  return std::chrono::nanoseconds(static_cast<std::int64_t>(seconds * 1e9));
}
double seconds_of(Clock::duration duration) {
  return std::chrono::duration<double>(duration).count();
}

struct CpuTimes {
  double user_s = 0;
  double all_s = 0;
};

CpuTimes thread_cpu() {
  rusage usage{};
  getrusage(RUSAGE_THREAD, &usage);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) * 1e-6;
  };
  const double user_s = seconds(usage.ru_utime);
  return {.user_s = user_s, .all_s = user_s + seconds(usage.ru_stime)};
}

/// Keeps a whole answer.
class WholeSink final : public AnswerSink {
 public:
  void on_head(int status) override { answer.status = status; }
  bool on_body(std::string_view bytes, Clock::time_point) override {
    answer.body += bytes;
    return answer.body.size() < std::size_t{64} << 20;
  }
  Answer answer;
};

const char* path_of(Endpoint endpoint) {
  return endpoint == Endpoint::chat ? "/v1/chat/completions" : "/v1/completions";
}

/// One run: its requests from the first arrival to the last answer.
class Run {
 public:
  Run(asio::io_context& io, const Peer& peer, double timeout_s, const RunOptions& options)
      : io_(io),
        peer_(peer),
        timeout_s_(timeout_s),
        options_(options),
        arrival_timer_(io),
        ticker_(io) {}

  RunLog log() {
    const CpuTimes before = thread_cpu();
    start_ = Clock::now();
    const bool is_closed = options_.arrivals.kind == ArrivalKind::closed;
    num_senders_ = is_closed ? options_.arrivals.concurrency : 1;
    for (std::int64_t i = 0; i < num_senders_; ++i) {
      asio::co_spawn(io_, is_closed ? send_in_turn() : send_by_clock(), kRethrow);
    }
    num_running_senders_ = num_senders_;
    asio::co_spawn(io_, tick(), kRethrow);
    io_.restart();
    io_.run();
    log_.num_warmup = options_.num_warmup;
    const CpuTimes after = thread_cpu();
    log_.client_cpu_s = after.all_s - before.all_s;
    log_.client_user_s = after.user_s - before.user_s;
    std::ranges::sort(log_.requests, {}, &RequestRecord::index);
    return std::move(log_);
  }

 private:
  struct Prepared {
    RequestRecord record;
    std::string text;
  };

  double now_s() const { return seconds_of(Clock::now() - start_); }

  Prepared prepare(std::int64_t index) const {
    const PlannedRequest plan = plan_request(options_.workload, index);
    const std::string body =
        request_body(options_.form, options_.prompts, plan, options_.workload.seed);
    return {.record = {.index = index,
                       .prompt_tokens = plan.prompt_tokens,
                       .output_tokens = plan.output_tokens},
            .text = request_text(peer_, path_of(options_.form.endpoint), body)};
  }

  /// Whether there is no request of this index any more. The time counts from the first request
  /// after the warm-up.
  bool is_last(std::int64_t index, double at_s) {
    if (is_stopping_) return true;
    if (index == options_.num_warmup) measured_from_s_ = at_s;
    const std::int64_t measured = index - options_.num_warmup;
    const bool is_enough = options_.num_requests > 0 && measured >= options_.num_requests;
    const bool is_late = options_.duration_s > 0 && at_s - measured_from_s_ > options_.duration_s;
    return measured > 0 && (is_enough || is_late);
  }

  double due_s(std::int64_t index, Arrivals* arrivals) const {
    if (arrivals) return arrivals->next_s();
    const auto& trace = options_.workload.trace;
    return index < std::ssize(trace) ? trace[static_cast<std::size_t>(index)].at_s : INFINITY;
  }

  asio::awaitable<void> send_by_clock() {
    std::optional<Arrivals> arrivals;
    if (options_.arrivals.kind != ArrivalKind::trace) {
      arrivals.emplace(options_.arrivals, options_.workload.seed);
    }
    for (std::int64_t index = 0;; ++index) {
      const double at_s = due_s(index, arrivals ? &*arrivals : nullptr);
      if (std::isinf(at_s) || is_last(index, at_s)) break;
      auto next = std::make_unique<Prepared>(prepare(index));
      next->record.scheduled_s = at_s;
      arrival_timer_.expires_at(start_ + duration_of(at_s));
      co_await arrival_timer_.async_wait(kAwait);
      if (is_stopping_) break;
      asio::co_spawn(io_, send_one(std::move(next)), kRethrow);
    }
    end_sender();
  }

  asio::awaitable<void> send_in_turn() {
    while (true) {
      const std::int64_t index = next_index_++;
      if (is_last(index, now_s())) break;
      auto next = std::make_unique<Prepared>(prepare(index));
      next->record.scheduled_s = now_s();
      co_await send_one(std::move(next));
    }
    end_sender();
  }

  asio::awaitable<void> send_one(std::unique_ptr<Prepared> prepared) {
    RequestRecord record = std::move(prepared->record);
    std::shared_ptr<Connection> connection;
    if (idle_.empty()) {
      connection = std::make_shared<Connection>(io_, peer_);
    } else {
      connection = std::move(idle_.back());
      idle_.pop_back();
    }
    active_.insert(connection.get());
    ++progress_.num_sent;
    record.sent_s = now_s();
    StreamSink sink(record, start_, options_.on_event);
    const ExchangeEnd end = co_await connection->exchange(
        prepared->text, sink, start_ + duration_of(record.sent_s) + duration_of(timeout_s_));
    sink.finish(end);
    active_.erase(connection.get());
    if (connection->is_open()) idle_.push_back(std::move(connection));
    ++progress_.num_done;
    if (!record.is_ok()) ++progress_.num_failed;
    log_.requests.push_back(std::move(record));
    end_if_over();
  }

  void end_sender() {
    --num_running_senders_;
    end_if_over();
  }
  void end_if_over() {
    if (num_running_senders_ == 0 && active_.empty()) ticker_.cancel();
  }

  asio::awaitable<void> tick() {
    while (num_running_senders_ > 0 || !active_.empty()) {
      ticker_.expires_after(kTick);
      co_await ticker_.async_wait(kAwait);
      progress_.elapsed_s = now_s();
      if (options_.on_progress) options_.on_progress(progress_);
      if (options_.stop && *options_.stop && !is_stopping_) stop();
    }
  }

  void stop() {
    is_stopping_ = log_.is_interrupted = true;
    arrival_timer_.cancel();
    for (Connection* connection : active_) connection->interrupt();
  }

  asio::io_context& io_;
  const Peer& peer_;
  const double timeout_s_;
  const RunOptions& options_;
  Clock::time_point start_;
  asio::steady_timer arrival_timer_;
  asio::steady_timer ticker_;
  std::vector<std::shared_ptr<Connection>> idle_;
  std::unordered_set<Connection*> active_;
  std::int64_t num_senders_ = 0;
  std::int64_t num_running_senders_ = 0;
  std::int64_t next_index_ = 0;
  double measured_from_s_ = 0;
  bool is_stopping_ = false;
  Progress progress_;
  RunLog log_;
};

}  // namespace

struct Client::State {
  ClientConfig config;
  asio::io_context io{1};
  std::unique_ptr<asio::ssl::context> tls;
  Peer peer;
};

Expected<std::unique_ptr<Client>> Client::open(ClientConfig config) {
  std::unique_ptr<Client> client(new Client);
  client->state_ = std::make_unique<State>();
  State& state = *client->state_;
  state.config = std::move(config);
  state.peer.url = state.config.url;
  state.peer.api_key = state.config.api_key;
  error_code error;
  if (state.config.url.is_tls) {
    state.tls = std::make_unique<asio::ssl::context>(asio::ssl::context::tls_client);
    const bool is_verified = state.config.certificates == Certificates::verified;
    state.tls->set_default_verify_paths(error);
    state.tls->set_verify_mode(is_verified ? asio::ssl::verify_peer : asio::ssl::verify_none,
                               error);
    state.peer.tls = state.tls.get();
  }
  tcp::resolver resolver(state.io);
  state.peer.addresses =
      resolver.resolve(state.config.url.host, std::to_string(state.config.url.port), error);
  if (error) {
    return Error{
        fmt::format("cannot find the host '{}': {}", state.config.url.host, error.message())};
  }
  return client;
}

Client::~Client() = default;

Expected<Answer> Client::ask(const std::string& path, const std::optional<std::string>& body) {
  WholeSink sink;
  ExchangeEnd end;
  const auto connection = std::make_shared<Connection>(state_->io, state_->peer);
  const auto deadline = Clock::now() + duration_of(state_->config.timeout_s);
  const std::string text = request_text(state_->peer, path, body);
  asio::co_spawn(state_->io, connection->exchange(text, sink, deadline),
                 [&end](const std::exception_ptr& fault, ExchangeEnd got) {
                   if (fault) std::rethrow_exception(fault);
                   end = std::move(got);
                 });
  state_->io.restart();
  state_->io.run();
  if (end.outcome != Outcome::ok) {
    return Error{fmt::format("cannot reach {}: {}; is a server running there?",
                             state_->config.url.authority(), end.words)};
  }
  return std::move(sink.answer);
}

RunLog Client::run(const RunOptions& options) {
  check(options.num_requests > 0 || options.duration_s > 0 ||
            options.arrivals.kind == ArrivalKind::trace,
        "a run ends after some requests or some time");
  return Run(state_->io, state_->peer, state_->config.timeout_s, options).log();
}

}  // namespace gauntlet::load::inline http
