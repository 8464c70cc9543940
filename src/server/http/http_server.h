// Sockets: accepts connections within limits, reads requests, and writes replies as they become
// ready. Each connection is a coroutine; a client that goes away abandons its reply.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/expected.h"
#include "server/http/http.h"

namespace gauntlet::server::inline http {

struct HttpLimits {
  std::uint32_t header_bytes = 16 << 10;
  std::uint64_t body_bytes = 16 << 20;
  std::uint64_t all_bodies_bytes = 256 << 20;  // of all requests being read or parsed
  std::int64_t connections = 4096;
  double header_s = 10;       // from the connection to the end of its first request's header
  double body_s = 30;         // from there to the end of its body
  double idle_s = 60;         // between requests
  double write_s = 30;        // for a piece of a reply to be taken
  double first_byte_s = 600;  // for a reply to begin
  double drain_s = 30;        // for replies under way when the server is told to end
};

struct HttpServerConfig {
  std::string host = "127.0.0.1";
  std::uint16_t port = 8000;  // 0: any that is free
  int threads = 1;
  /// Between two pieces of a reply at least: what becomes ready in between goes together.
  double stream_interval_s = 0.008;
  HttpLimits limits;
  std::string tls_certificate;  // files; both or none
  std::string tls_key;
  /// As AccessRules takes them.
  std::vector<std::string> allowed_hosts;
  std::vector<std::string> allowed_origins;
  /// One JSON object per request, without a newline; from any thread. None: no log.
  std::function<void(std::string_view line)> log;
};

enum class Signals { left_alone, handled };

class HttpServer {
 public:
  /// Listens when this returns; the handler outlives the server.
  static Expected<std::unique_ptr<HttpServer>> listen(HttpServerConfig config, Handler& handler);
  ~HttpServer();

  std::uint16_t port() const;
  /// Serves until drained or stopped. SIGTERM and SIGINT, where handled, drain; a second one stops.
  void run(Signals signals, std::function<void()> on_drain = {});
  /// From any thread: run() returns once the replies under way are read, or after drain_s. Until
  /// then new connections are taken for one request each, so that they hear why.
  void drain();
  /// From any thread: run() returns now.
  void stop();

 private:
  HttpServer() = default;
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace gauntlet::server::inline http
