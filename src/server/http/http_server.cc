#include "server/http/http_server.h"

#include <fmt/format.h>
#include <sched.h>

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/asio/ssl.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/strand.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <csignal>
#include <mutex>
#include <optional>
#include <random>
#include <thread>
#include <unordered_map>
#include <vector>

#include "core/os/threads.h"
#include "server/http/connection.h"
#include "server/http/transport.h"
#include "server/http/wire/response_head.h"

namespace gauntlet::server::inline http {
namespace {

namespace asio = boost::asio;
using tcp = asio::ip::tcp;

/// Whoever made an executor is pinned to the CPU of its first worker, and would keep to it.
void unpin_this_thread() {
  cpu_set_t set;
  CPU_ZERO(&set);
  for (const int cpu : allowed_cpus()) CPU_SET(cpu, &set);
  sched_setaffinity(0, sizeof(set), &set);
}

constexpr int kMaxTurnedAway = 64;  // connections that are being told there is no room

struct Session {
  explicit Session(tcp::socket accepted)
      : strand(accepted.get_executor()),
        handle(accepted.native_handle()),
        socket(std::move(accepted)) {}
  const asio::any_io_executor strand;
  const int handle;
  tcp::socket socket;      // moved into a stream once served
  bool came_late = false;  // while draining, which does not wait for it
  std::atomic<bool> waiting{true};
};

}  // namespace

struct HttpServer::State {
  State(HttpServerConfig given, Handler& handler)
      : config(std::move(given)),
        context{.config = config,
                .handler = handler,
                .tls = nullptr,
                .draining = draining,
                .next_request = next_request,
                .bodies = bodies,
                .access = access,
                .workers = nullptr,
                .chance = std::random_device()()} {}

  HttpServerConfig config;
  std::atomic<bool> draining{false};
  std::atomic<std::uint64_t> next_request{0};
  AccessRules access{config.host, config.allowed_hosts, config.allowed_origins};
  BodyBudget bodies{
      {.bytes = config.limits.all_bodies_bytes,
       // Slower than this, the largest body would not be whole in time.
       .slow_bytes_per_s = static_cast<double>(config.limits.body_bytes) / config.limits.body_s}};
  std::unique_ptr<asio::ssl::context> tls;
  asio::io_context io;
  std::optional<WorkPool> workers;  // ends before the connections go that wait for it
  ConnectionContext context;
  asio::strand<asio::io_context::executor_type> control = asio::make_strand(io);  // of these three:
  tcp::acceptor acceptor{control};
  asio::steady_timer deadline{control};
  asio::signal_set signals{control};
  std::function<void()> on_drain;
  std::mutex mutex;  // of the sessions
  std::unordered_map<Session*, std::shared_ptr<Session>> sessions;
  std::int64_t num_awaited = 0;  // of them, before a drained server ends
  std::atomic<int> num_turned_away{0};

  Expected<void> open();
  Expected<void> open_tls();
  asio::awaitable<void> accept();
  asio::awaitable<void> serve(std::shared_ptr<Session> session);
  asio::awaitable<void> turn_away(std::shared_ptr<Session> session);
  bool admit(const std::shared_ptr<Session>& session);
  void dismiss(Session* session);
  void watch_signals();
  void drain();
};

Expected<void> HttpServer::State::open_tls() {
  if (config.tls_certificate.empty() && config.tls_key.empty()) return {};
  if (config.tls_certificate.empty() || config.tls_key.empty()) {
    return Error{"TLS needs a certificate and its key: give both", ErrorKind::wrong_use};
  }
  tls = std::make_unique<asio::ssl::context>(asio::ssl::context::tls_server);
  tls->set_options(asio::ssl::context::no_tlsv1 | asio::ssl::context::no_tlsv1_1);
  boost::system::error_code error;
  tls->use_certificate_chain_file(config.tls_certificate, error);
  if (error) {
    return Error{fmt::format("{} holds no certificate that can be used: {}", config.tls_certificate,
                             error.message())};
  }
  tls->use_private_key_file(config.tls_key, asio::ssl::context::pem, error);
  if (error) {
    return Error{
        fmt::format("{} holds no key for that certificate: {}", config.tls_key, error.message())};
  }
  context.tls = tls.get();
  return {};
}

Expected<void> HttpServer::State::open() {
  if (auto opened = open_tls(); !opened) return opened;
  boost::system::error_code error;
  const auto address = asio::ip::make_address(config.host, error);
  if (error) {
    return Error{fmt::format("'{}' is no address to listen on: give one as in 127.0.0.1 or ::1",
                             config.host),
                 ErrorKind::wrong_use};
  }
  const tcp::endpoint endpoint(address, config.port);
  acceptor.open(endpoint.protocol(), error);
  if (!error) acceptor.set_option(tcp::acceptor::reuse_address(true), error);
  if (!error) acceptor.bind(endpoint, error);
  if (!error) acceptor.listen(asio::socket_base::max_listen_connections, error);
  if (error) {
    return Error{
        fmt::format("cannot listen on {} port {}: {}", config.host, config.port, error.message())};
  }
  return {};
}

bool HttpServer::State::admit(const std::shared_ptr<Session>& session) {
  const std::lock_guard lock(mutex);
  if (std::ssize(sessions) >= config.limits.connections) return false;
  session->came_late = draining;
  if (!session->came_late) ++num_awaited;
  sessions.emplace(session.get(), session);
  return true;
}

void HttpServer::State::dismiss(Session* session) {
  const std::lock_guard lock(mutex);
  if (!session->came_late) --num_awaited;
  sessions.erase(session);
  if (draining && num_awaited == 0) io.stop();
}

asio::awaitable<void> HttpServer::State::serve(std::shared_ptr<Session> session) {
  try {
    co_await serve_connection(session->socket, context, session->waiting);
  } catch (const std::exception&) {
    // One connection's fault ends that connection.
  }
  dismiss(session.get());
}

asio::awaitable<void> HttpServer::State::turn_away(std::shared_ptr<Session> session) {
  const ApiError error{
      .status = 503, .message = "the server has no room for more connections", .retry_after_s = 1};
  const std::string body = to_json(error);
  const std::string answer = response_head(head_of(error), new_request_id(context),
                                           {.keep_alive = false, .body_bytes = body.size()}) +
                             body;
  // Fits any send buffer, and a TLS client takes it for a failed handshake.
  boost::system::error_code ignored;
  session->socket.non_blocking(true, ignored);
  session->socket.write_some(asio::buffer(answer), ignored);
  if (num_turned_away.fetch_add(1) < kMaxTurnedAway) co_await close_gently(session->socket);
  --num_turned_away;
}

asio::awaitable<void> HttpServer::State::accept() {
  while (acceptor.is_open()) {
    auto [error, socket] =
        co_await acceptor.async_accept(asio::make_strand(io), asio::as_tuple(asio::use_awaitable));
    if (error == asio::error::operation_aborted) co_return;
    if (error) {
      // Out of files, most likely: those who hold them need a moment.
      asio::steady_timer pause(control, std::chrono::milliseconds(50));
      co_await pause.async_wait(asio::as_tuple(asio::use_awaitable));
      continue;
    }
    const auto session = std::make_shared<Session>(std::move(socket));
    if (admit(session)) {
      asio::co_spawn(session->strand, serve(session), asio::detached);
    } else {
      asio::co_spawn(session->strand, turn_away(session), asio::detached);
    }
  }
}

void HttpServer::State::drain() {
  if (draining.exchange(true)) return;
  if (on_drain) on_drain();
  deadline.expires_after(
      std::chrono::milliseconds(static_cast<std::int64_t>(config.limits.drain_s * 1e3)));
  deadline.async_wait([this](boost::system::error_code error) {
    if (!error) io.stop();
  });
  const std::lock_guard lock(mutex);
  if (num_awaited == 0) io.stop();
  for (const auto& [key, session] : sessions) {
    // Where it waits for a request, the handle is open, and its coroutine reads the end.
    asio::post(session->strand, [held = session] {
      if (held->waiting) ::shutdown(held->handle, SHUT_RD);
    });
  }
}

void HttpServer::State::watch_signals() {
  signals.async_wait([this](boost::system::error_code error, int signal) {
    if (error) return;
    if (signal == SIGHUP) {
      config.on_hangup();
    } else if (draining) {
      return io.stop();
    } else {
      drain();
    }
    watch_signals();
  });
}

Expected<std::unique_ptr<HttpServer>> HttpServer::listen(HttpServerConfig config,
                                                         Handler& handler) {
  std::unique_ptr<HttpServer> server(new HttpServer);
  server->state_ = std::make_unique<State>(std::move(config), handler);
  if (auto opened = server->state_->open(); !opened) return opened.error();
  return server;
}

HttpServer::~HttpServer() = default;

std::uint16_t HttpServer::port() const { return state_->acceptor.local_endpoint().port(); }

void HttpServer::run(Signals signals, std::function<void()> on_drain) {
  State& state = *state_;
  state.on_drain = std::move(on_drain);
  if (signals == Signals::handled) {
    state.signals.add(SIGTERM);
    state.signals.add(SIGINT);
    if (state.config.on_hangup) state.signals.add(SIGHUP);
    state.watch_signals();
  }
  unpin_this_thread();
  state.context.workers = &state.workers.emplace(state.config.limits.work);
  asio::co_spawn(state.control, state.accept(), asio::detached);
  std::vector<std::thread> others;
  for (int i = 1; i < state.config.threads; ++i) others.emplace_back([&] { state.io.run(); });
  state.io.run();
  for (std::thread& thread : others) thread.join();
}

void HttpServer::drain() {
  asio::post(state_->control, [this] { state_->drain(); });
}

void HttpServer::stop() { state_->io.stop(); }

}  // namespace gauntlet::server::inline http
