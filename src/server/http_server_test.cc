// Limits, keep-alive, streaming, disconnection and draining, over real sockets on the loopback.
#include "server/http_server.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>

#include <chrono>
#include <mutex>
#include <thread>

#include "server/fake_handler.h"
#include "server/test_client.h"

namespace gauntlet::server {
namespace {

using ::testing::HasSubstr;

class HttpServerTest : public ::testing::Test {
 protected:
  void start(HttpLimits limits = {}, int threads = 2, double stream_interval_s = 0) {
    auto server = HttpServer::listen({.port = 0,
                                      .threads = threads,
                                      .stream_interval_s = stream_interval_s,
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
  EXPECT_THAT(client.read_all(), HasSubstr("HTTP/1.1 431"));
}

TEST_F(HttpServerTest, cve_2025_48956_refuses_unlimited_trailers_and_chunk_extensions) {
  start();
  const std::string head = "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n";
  Client trailers(port_);
  std::string many;
  for (int i = 0; i < 20000; ++i) many += "A: aaaaaaaa\r\n";
  trailers.try_to_send(head + "1\r\na\r\n0\r\n" + many);
  EXPECT_THAT(trailers.read_all(), HasSubstr("HTTP/1.1 431"));
  Client extension(port_);
  extension.try_to_send(head + "1;a=" + std::string(200000, 'a'));
  EXPECT_THAT(extension.read_all(), HasSubstr("HTTP/1.1 431"));
}

TEST_F(HttpServerTest, refuses_a_request_with_two_lengths) {
  start();
  const std::string head = "POST /smuggle HTTP/1.1\r\nHost: x\r\n";
  for (const char* lengths :
       {"Content-Length: 4\r\nTransfer-Encoding: chunked\r\n",
        "Transfer-Encoding: chunked\r\nContent-Length: 4\r\n",
        "Content-Length: 4\r\nContent-Length: 5\r\n", "Content-Length: -1\r\n",
        "Content-Length: 99999999999999999999\r\n", "Content-Length: 4, 5\r\n"}) {
    Client client(port_);
    client.send(head + lengths + "\r\n0\r\n\r\n");
    EXPECT_THAT(client.read_all(), HasSubstr("HTTP/1.1 4")) << lengths;
  }
}

TEST_F(HttpServerTest, tells_even_a_client_that_keeps_sending_what_was_wrong) {
  start({.body_bytes = 100});
  Client client(port_);
  client.try_to_send("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 4000000\r\n\r\n" +
                     std::string(4000000, 'a'));
  EXPECT_THAT(client.read_all(), HasSubstr("HTTP/1.1 413"));
}

TEST_F(HttpServerTest, bounds_what_all_bodies_take_together) {
  start({.all_bodies_bytes = 1000});
  Client holds(port_);
  holds.send("POST /block HTTP/1.1\r\nHost: x\r\nContent-Length: 800\r\n\r\n" +
             std::string(800, 'a'));
  EXPECT_TRUE(handler_.blocks.try_acquire_for(std::chrono::seconds(20)));
  const std::string more =
      "POST /b HTTP/1.1\r\nHost: x\r\nConnection: close\r\n"
      "Content-Length: 300\r\n\r\n" +
      std::string(300, 'b');
  Client late(port_);
  late.send(more);
  const std::string answer = late.read_all();
  EXPECT_THAT(answer, HasSubstr("HTTP/1.1 503"));
  EXPECT_THAT(answer, HasSubstr("Retry-After"));
  handler_.let_go.release();
  EXPECT_THAT(holds.read_until("aaaa"), HasSubstr("200 OK"));
  Client after(port_);
  after.send(more);
  EXPECT_THAT(after.read_all(), HasSubstr("200 OK"));
}

TEST_F(HttpServerTest, counts_what_has_come_of_bodies_that_are_not_whole) {
  start({.all_bodies_bytes = 1000});
  const std::string head =
      "POST /a HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: 900\r\n\r\n";
  Client one(port_), other(port_);
  for (Client* client : {&one, &other}) client->send(head + std::string(800, 'a'));
  // Read a piece at a time, either may find no more room, or both: but nobody else is answered yet.
  pollfd answers[] = {{.fd = one.handle(), .events = POLLIN, .revents = 0},
                      {.fd = other.handle(), .events = POLLIN, .revents = 0}};
  EXPECT_GE(::poll(answers, 2, 20000), 1);
  std::string both;
  for (Client* client : {&one, &other}) {
    client->try_to_send(std::string(100, 'a'));
    both += client->read_all();
  }
  EXPECT_THAT(both, HasSubstr("HTTP/1.1 503"));
  Client after(port_);
  after.send(head + std::string(900, 'b'));
  EXPECT_THAT(after.read_all(), HasSubstr("200 OK"));
}

TEST_F(HttpServerTest, answers_others_while_a_large_body_is_worked_on) {
  start({}, 1);
  Client large(port_);
  large.send("POST /block HTTP/1.1\r\nHost: x\r\nContent-Length: 100000\r\n\r\n" +
             std::string(100000, 'a'));
  for (int i = 0; i < 20; ++i) {
    Client other(port_);
    other.send("GET /a HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
    EXPECT_THAT(other.read_all(), HasSubstr("GET /a"));
  }
  handler_.let_go.release();
  EXPECT_THAT(large.read_until("POST /block"), HasSubstr("200 OK"));
}

TEST_F(HttpServerTest, sends_no_body_to_who_asks_for_the_head) {
  start();
  Client client(port_);
  client.send("HEAD /a HTTP/1.1\r\nHost: x\r\n\r\nGET /b HTTP/1.1\r\nHost: x\r\n\r\n");
  const std::string both = client.read_until("GET /b ");
  EXPECT_THAT(both, HasSubstr("Content-Length: 8"));
  EXPECT_EQ(both.find("HEAD /a"), std::string::npos);
}

TEST_F(HttpServerTest, says_so_when_no_answer_begins_in_time) {
  start({.first_byte_s = 0.1});
  Client client(port_);
  client.send("GET /never HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
  const std::string answer = client.read_all();
  EXPECT_THAT(answer, HasSubstr("HTTP/1.1 503"));
  EXPECT_THAT(answer, HasSubstr("\"error\""));
  EXPECT_EQ(handler_.num_abandoned, 1);
}

TEST_F(HttpServerTest, notices_that_a_client_left_behind_what_it_sent_ahead) {
  start();
  {
    Client client(port_);
    client.send("GET /hang HTTP/1.1\r\nHost: x\r\n\r\n");
    client.read_until("data: 1");
    client.send("GET /next HTTP/1.1\r\n");
  }
  for (int i = 0; i < 500 && handler_.num_abandoned == 0; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  EXPECT_EQ(handler_.num_abandoned, 1);
}

TEST_F(HttpServerTest, refuses_a_body_that_is_too_large_before_it_comes) {
  start({.body_bytes = 100});
  Client client(port_);
  client.send("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 101\r\n\r\n");
  EXPECT_THAT(client.read_all(), HasSubstr("HTTP/1.1 413"));
}

TEST_F(HttpServerTest, refuses_what_is_not_http) {
  start();
  Client client(port_);
  client.send("this is no request\r\n\r\n");
  EXPECT_THAT(client.read_all(), HasSubstr("HTTP/1.1 400"));
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
  EXPECT_THAT(client.read_until("\r\n\r\n"), HasSubstr("HTTP/1.1 500"));
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

TEST_F(HttpServerTest, lets_pieces_of_a_stream_wait_for_those_that_follow_soon) {
  constexpr double kInterval_s = 0.05;
  start({}, 2, kInterval_s);
  Client client(port_);
  client.send("GET /count HTTP/1.1\r\nHost: x\r\n\r\n");
  const auto begun = std::chrono::steady_clock::now();
  EXPECT_THAT(client.read_until("data: 1"), HasSubstr("chunked"));
  EXPECT_THAT(client.read_until("data: 5"), HasSubstr("data: 5"));
  const std::chrono::duration<double> passed = std::chrono::steady_clock::now() - begun;
  EXPECT_GE(passed.count(), 4 * kInterval_s) << "between each two of the five";
}

TEST_F(HttpServerTest, turns_away_connections_beyond_its_limit) {
  start({.connections = 1});
  Client first(port_);
  first.send("GET /a HTTP/1.1\r\nHost: x\r\n\r\n");
  first.read_until("GET /a");
  Client second(port_);
  second.send("GET /b HTTP/1.1\r\nHost: x\r\n\r\n");
  EXPECT_THAT(second.read_all(), HasSubstr("HTTP/1.1 503"));
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
