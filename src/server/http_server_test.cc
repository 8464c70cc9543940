// Limits, keep-alive, streaming, disconnection and draining, over real sockets on the loopback.
#include "server/http_server.h"

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <mutex>
#include <thread>

namespace gauntlet::server {
namespace {

using ::testing::HasSubstr;

class Client {
 public:
  explicit Client(std::uint16_t port) : socket_(::socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    EXPECT_EQ(::connect(socket_, reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
    const timeval limit{.tv_sec = 20, .tv_usec = 0};
    ::setsockopt(socket_, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
  }
  ~Client() { ::close(socket_); }
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  void send(const std::string& text) {
    EXPECT_EQ(::send(socket_, text.data(), text.size(), MSG_NOSIGNAL), std::ssize(text));
  }
  /// Until this was read, or the other end closed.
  std::string read_until(const std::string& end) {
    std::string text;
    char buffer[4096];
    while (text.find(end) == std::string::npos) {
      const ssize_t count = ::recv(socket_, buffer, sizeof(buffer), 0);
      if (count <= 0) break;
      text.append(buffer, static_cast<std::size_t>(count));
    }
    return text;
  }
  std::string read_all() { return read_until("\x01never"); }

 private:
  int socket_;
};

/// Says what was asked at /echo; at /hang, a stream that begins and never goes on.
class FakeHandler final : public Handler {
 public:
  std::shared_ptr<Reply> handle(const HttpRequest& request) override {
    if (request.target == "/hang") return std::make_shared<Hanging>(num_abandoned);
    if (request.target == "/throw") throw std::runtime_error("a fault");
    return make_reply({}, request.method + " " + request.target + " " + request.body);
  }
  std::atomic<int> num_abandoned{0};

 private:
  class Hanging final : public Reply {
   public:
    explicit Hanging(std::atomic<int>& num_abandoned) : num_abandoned_(num_abandoned) {}
    void on_ready(std::function<void()>) override {}
    std::optional<Piece> take() override {
      if (std::exchange(begun_, true)) return std::nullopt;
      return Piece{.head = HttpHead{.content_type = "text/event-stream"}, .body = "data: 1\n\n"};
    }
    void abandon() override { ++num_abandoned_; }

   private:
    std::atomic<int>& num_abandoned_;
    bool begun_ = false;
  };
};

class HttpServerTest : public ::testing::Test {
 protected:
  void start(HttpLimits limits = {}) {
    auto server = HttpServer::listen({.port = 0,
                                      .threads = 2,
                                      .limits = limits,
                                      .log =
                                          [this](std::string_view line) {
                                            const std::lock_guard lock(mutex_);
                                            log_ += std::string(line) + "\n";
                                          }},
                                     handler_);
    ASSERT_TRUE(server) << server.error().message;
    server_ = std::move(*server);
    port_ = server_->port();
    thread_ = std::thread([this] { server_->run(Signals::left_alone); });
  }
  void TearDown() override {
    if (!thread_.joinable()) return;
    server_->stop();
    thread_.join();
  }

  FakeHandler handler_;
  std::mutex mutex_;
  std::string log_;
  std::unique_ptr<HttpServer> server_;
  std::uint16_t port_ = 0;
  std::thread thread_;
};

TEST_F(HttpServerTest, answers_several_requests_on_one_connection) {
  start();
  Client client(port_);
  client.send("GET /a HTTP/1.1\r\nHost: x\r\nx-request-id: mine\r\n\r\n");
  const std::string first = client.read_until("GET /a ");
  EXPECT_THAT(first, HasSubstr("200 OK"));
  EXPECT_THAT(first, HasSubstr("x-request-id: mine"));
  client.send("POST /b HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\nhi");
  EXPECT_THAT(client.read_until("POST /b hi"), HasSubstr("POST /b hi"));
  const std::lock_guard lock(mutex_);
  EXPECT_THAT(log_, HasSubstr(R"("request_id":"mine")"));
}

TEST_F(HttpServerTest, cve_2025_48956_refuses_unlimited_headers) {
  start();
  Client client(port_);
  client.send("GET / HTTP/1.1\r\nHost: x\r\nA: " + std::string(20000, 'a'));
  EXPECT_THAT(client.read_all(), HasSubstr("431"));
}

TEST_F(HttpServerTest, refuses_a_body_that_is_too_large_before_it_comes) {
  start({.body_bytes = 100});
  Client client(port_);
  client.send("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 101\r\n\r\n");
  EXPECT_THAT(client.read_all(), HasSubstr("413"));
}

TEST_F(HttpServerTest, refuses_what_is_not_http) {
  start();
  Client client(port_);
  client.send("this is no request\r\n\r\n");
  EXPECT_THAT(client.read_all(), HasSubstr("400"));
}

TEST_F(HttpServerTest, closes_on_a_header_that_does_not_come) {
  start({.header_s = 0.2});
  Client client(port_);
  client.send("GET / HT");
  EXPECT_EQ(client.read_all(), "");
}

TEST_F(HttpServerTest, survives_a_handler_that_throws) {
  start();
  Client client(port_);
  client.send("GET /throw HTTP/1.1\r\nHost: x\r\n\r\n");
  EXPECT_THAT(client.read_until("\r\n\r\n"), HasSubstr("500"));
}

TEST_F(HttpServerTest, abandons_the_reply_of_a_client_that_goes_away) {
  start();
  {
    Client client(port_);
    client.send("GET /hang HTTP/1.1\r\nHost: x\r\n\r\n");
    EXPECT_THAT(client.read_until("data: 1"), HasSubstr("chunked"));
  }
  for (int i = 0; i < 500 && handler_.num_abandoned == 0; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  EXPECT_EQ(handler_.num_abandoned, 1);
}

TEST_F(HttpServerTest, turns_away_connections_beyond_its_limit) {
  start({.connections = 1});
  Client first(port_);
  first.send("GET /a HTTP/1.1\r\nHost: x\r\n\r\n");
  first.read_until("GET /a");
  Client second(port_);
  EXPECT_THAT(second.read_all(), HasSubstr("503"));
}

TEST_F(HttpServerTest, drains_idle_connections_at_once_and_others_by_the_deadline) {
  start({.drain_s = 0.3});
  Client idle(port_);
  idle.send("GET /a HTTP/1.1\r\nHost: x\r\n\r\n");
  idle.read_until("GET /a");
  Client busy(port_);
  busy.send("GET /hang HTTP/1.1\r\nHost: x\r\n\r\n");
  busy.read_until("data: 1");
  server_->drain();
  EXPECT_EQ(idle.read_all(), "");
  thread_.join();
}

TEST(HttpServerConfig, is_refused_when_it_cannot_work) {
  FakeHandler handler;
  EXPECT_FALSE(HttpServer::listen({.host = "nowhere"}, handler));
  EXPECT_FALSE(HttpServer::listen({.port = 0, .tls_certificate = "x"}, handler));
  EXPECT_FALSE(HttpServer::listen({.port = 0, .tls_certificate = "/nowhere", .tls_key = "/nowhere"},
                                  handler));
}

}  // namespace
}  // namespace gauntlet::server
