// Limits, keep-alive, streaming, disconnection and draining, over real sockets on the loopback.
#include "server/http/http_server.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>

#include <chrono>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "server/http/http_server_fixture.h"

namespace gauntlet::server::inline http {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

TEST_F(HttpServerTest, answers_several_requests_on_one_connection) {
  start();
  Client client(port_);
  client.send("GET /a HTTP/1.1\r\nHost: localhost\r\nx-request-id: mine\r\n\r\n");
  const std::string first = client.read_until("GET /a ");
  EXPECT_THAT(first, HasSubstr("200 OK"));
  EXPECT_THAT(first, HasSubstr("x-request-id: mine"));
  client.send("POST /b HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\n\r\nhi");
  EXPECT_THAT(client.read_until("POST /b hi"), HasSubstr("POST /b hi"));
  const std::lock_guard lock(mutex_);
  EXPECT_THAT(log_, HasSubstr(R"("request_id":"mine")"));
}

TEST_F(HttpServerTest, cve_2025_48956_refuses_unlimited_headers) {
  start();
  Client client(port_);
  client.send("GET / HTTP/1.1\r\nHost: localhost\r\nA: " + std::string(20000, 'a'));
  EXPECT_THAT(client.read_all(), HasSubstr("HTTP/1.1 431"));
}

TEST_F(HttpServerTest, cve_2025_48956_refuses_unlimited_trailers_and_chunk_extensions) {
  start();
  const std::string head =
      "POST / HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n";
  Client trailers(port_);
  std::string many;
  for (int i = 0; i < 20000; ++i) many += "A: aaaaaaaa\r\n";
  trailers.try_to_send(head + "1\r\na\r\n0\r\n" + many);
  EXPECT_THAT(trailers.read_all(), HasSubstr("HTTP/1.1 431"));
  Client extension(port_);
  extension.try_to_send(head + "1;a=" + std::string(200000, 'a'));
  EXPECT_THAT(extension.read_all(), HasSubstr("HTTP/1.1 431"));
}

TEST_F(HttpServerTest, tells_even_a_client_that_keeps_sending_what_was_wrong) {
  start({.body_bytes = 100});
  Client client(port_);
  client.try_to_send("POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 4000000\r\n\r\n" +
                     std::string(4000000, 'a'));
  EXPECT_THAT(client.read_all(), HasSubstr("HTTP/1.1 413"));
}

TEST_F(HttpServerTest, bounds_what_all_bodies_take_together) {
  start({.all_bodies_bytes = 1000});
  Client holds(port_);
  holds.send("POST /block HTTP/1.1\r\nHost: localhost\r\nContent-Length: 800\r\n\r\n" +
             std::string(800, 'a'));
  EXPECT_TRUE(handler_.blocks.try_acquire_for(std::chrono::seconds(20)));
  const std::string more =
      "POST /b HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
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
      "POST /a HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Length: 900\r\n\r\n";
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

TEST_F(HttpServerTest, sends_no_body_to_who_asks_for_the_head) {
  start();
  Client client(port_);
  client.send(
      "HEAD /a HTTP/1.1\r\nHost: localhost\r\n\r\nGET /b HTTP/1.1\r\nHost: localhost\r\n\r\n");
  const std::string both = client.read_until("GET /b ");
  EXPECT_THAT(both, HasSubstr("Content-Length: 8"));
  EXPECT_EQ(both.find("HEAD /a"), std::string::npos);
}

TEST_F(HttpServerTest, says_so_when_no_answer_begins_in_time) {
  start({.first_byte_s = 0.1});
  Client client(port_);
  client.send("GET /never HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
  const std::string answer = client.read_all();
  EXPECT_THAT(answer, HasSubstr("HTTP/1.1 503"));
  EXPECT_THAT(answer, HasSubstr("\"error\""));
  EXPECT_EQ(handler_.num_abandoned, 1);
}

TEST_F(HttpServerTest, notices_that_a_client_left_behind_what_it_sent_ahead) {
  start();
  {
    Client client(port_);
    client.send("GET /hang HTTP/1.1\r\nHost: localhost\r\n\r\n");
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
  client.send("POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 101\r\n\r\n");
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
  client.send("GET /throw HTTP/1.1\r\nHost: localhost\r\n\r\n");
  EXPECT_THAT(client.read_until("\r\n\r\n"), HasSubstr("HTTP/1.1 500"));
}

TEST_F(HttpServerTest, abandons_the_reply_of_a_client_that_goes_away) {
  start();
  {
    Client client(port_);
    client.send("GET /hang HTTP/1.1\r\nHost: localhost\r\n\r\n");
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
  client.send("GET /count HTTP/1.1\r\nHost: localhost\r\n\r\n");
  const auto begun = std::chrono::steady_clock::now();
  EXPECT_THAT(client.read_until("data: 1"), HasSubstr("chunked"));
  EXPECT_THAT(client.read_until("data: 5"), HasSubstr("data: 5"));
  const std::chrono::duration<double> passed = std::chrono::steady_clock::now() - begun;
  EXPECT_GE(passed.count(), 4 * kInterval_s) << "between each two of the five";
}

TEST_F(HttpServerTest, turns_away_connections_beyond_its_limit) {
  start({.connections = 1});
  Client first(port_);
  first.send("GET /a HTTP/1.1\r\nHost: localhost\r\n\r\n");
  first.read_until("GET /a");
  Client second(port_);
  second.send("GET /b HTTP/1.1\r\nHost: localhost\r\n\r\n");
  const std::string answer = second.read_all();
  EXPECT_THAT(answer, StartsWith("HTTP/1.1 503"));
  EXPECT_THAT(answer, HasSubstr("\r\nRetry-After: 1\r\n"));
  EXPECT_THAT(answer, HasSubstr("\r\nConnection: close\r\n"));
  EXPECT_THAT(answer, HasSubstr("\r\nx-request-id: "));
}

TEST_F(HttpServerTest, refuses_by_the_head_before_a_body_comes) {
  start();
  Client client(port_);
  client.send("POST /forbidden HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100000\r\n\r\n");
  const std::string answer = client.read_all();
  EXPECT_THAT(answer, HasSubstr("HTTP/1.1 401"));
  EXPECT_THAT(answer, HasSubstr("Connection: close"));
  EXPECT_EQ(handler_.num_handled, 0);
  Client invited(port_);
  invited.send(
      "POST /forbidden HTTP/1.1\r\nHost: localhost\r\nExpect: 100-continue\r\n"
      "Content-Length: 100000\r\n\r\n");
  EXPECT_THAT(invited.read_all(), StartsWith("HTTP/1.1 401")) << "nobody asked for the body";
  Client bodiless(port_);
  bodiless.send("GET /forbidden HTTP/1.1\r\nHost: localhost\r\n\r\n");
  EXPECT_THAT(bodiless.read_until("\"no\""), HasSubstr("HTTP/1.1 401"));
  bodiless.send("GET /a HTTP/1.1\r\nHost: localhost\r\n\r\n");
  EXPECT_THAT(bodiless.read_until("GET /a"), HasSubstr("200 OK"));
}

TEST_F(HttpServerTest, answers_for_its_own_names_only) {
  start();
  const auto ask = [&](const std::string& request) {
    Client client(port_);
    client.send(request);
    return client.read_until("}");
  };
  EXPECT_THAT(ask("GET /a HTTP/1.1\r\nHost: evil.example\r\n\r\n"), HasSubstr("HTTP/1.1 421"));
  EXPECT_THAT(ask("GET http://evil.example/a HTTP/1.1\r\nHost: localhost\r\n\r\n"),
              HasSubstr("HTTP/1.1 421"));
  EXPECT_EQ(handler_.num_handled, 0);
  Client whole(port_);
  whole.send("GET http://LOCALHOST:1/a HTTP/1.1\r\nHost: [::1]:8000\r\n\r\n");
  EXPECT_THAT(whole.read_until("GET /a"), HasSubstr("200 OK"));
}

TEST_F(HttpServerTest, makes_room_of_bodies_that_stalled_for_one_that_flows) {
  start({.all_bodies_bytes = 1 << 20});
  const std::string head =
      "POST /a HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Length: ";
  std::vector<std::unique_ptr<Client>> stalled;
  const auto begin_one = [&] {
    auto client = std::make_unique<Client>(port_);
    client->send(head + "300000\r\n\r\n" + std::string(256000, 'a'));
    return client;
  };
  for (int i = 0; i < 4; ++i) stalled.push_back(begin_one());
  // There is no room while they are looked at, and then one of them makes it.
  const auto begun = std::chrono::steady_clock::now();
  std::string told, answer;
  while (told.empty() || answer.find("200 OK") == std::string::npos) {
    Client flows(port_);
    flows.send(head + "200000\r\n\r\n");
    flows.try_to_send(std::string(200000, 'b'));
    answer = flows.read_all();
    for (auto& client : stalled) {
      pollfd state{.fd = client->handle(), .events = POLLIN, .revents = 0};
      if (told.empty() && ::poll(&state, 1, 20) > 0) told = client->read_all();
      // The room was gone before it was read whole: it never stalled, and another takes its place.
      if (told.starts_with("HTTP/1.1 503")) {
        told.clear();
        client = begin_one();
      }
    }
    const std::chrono::duration<double> passed = std::chrono::steady_clock::now() - begun;
    ASSERT_LT(passed.count(), 20) << answer.substr(0, 300);
  }
  EXPECT_THAT(told, HasSubstr("HTTP/1.1 408"));
}

TEST_F(HttpServerTest, answers_a_client_that_sends_no_more) {
  start({}, 2, 0.02);
  Client whole(port_);
  whole.send("GET /later HTTP/1.1\r\nHost: localhost\r\n\r\n");
  whole.end_sending();
  ASSERT_TRUE(handler_.num_later.try_acquire_for(std::chrono::seconds(20)));
  // It is asked whether it is still there, and stays.
  EXPECT_THAT(whole.read_until("Continue\r\n\r\n"), HasSubstr("HTTP/1.1 100"));
  std::this_thread::sleep_for(std::chrono::milliseconds(300));
  EXPECT_EQ(handler_.num_abandoned, 0);
  handler_.later->answer();
  EXPECT_THAT(whole.read_all(), HasSubstr("later"));
  for (const std::string target : {"/count", "/parts"}) {
    Client streams(port_);
    streams.send("GET " + target + " HTTP/1.1\r\nHost: localhost\r\n\r\n");
    streams.end_sending();
    EXPECT_THAT(streams.read_all(), HasSubstr("data: 5")) << target;
  }
}

TEST_F(HttpServerTest, abandons_a_whole_reply_whose_client_is_gone) {
  start();
  for (const bool ends_sending_first : {false, true}) {
    const int before = handler_.num_abandoned;
    {
      Client client(port_);
      client.send("GET /later HTTP/1.1\r\nHost: localhost\r\n\r\n");
      ASSERT_TRUE(handler_.num_later.try_acquire_for(std::chrono::seconds(20)));
      if (ends_sending_first) {
        client.end_sending();
        std::this_thread::sleep_for(std::chrono::milliseconds(50));
      }
    }
    for (int i = 0; i < 1000 && handler_.num_abandoned == before; ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    EXPECT_EQ(handler_.num_abandoned, before + 1);
  }
}

TEST_F(HttpServerTest, blames_a_reader_only_for_a_socket_that_stays_full) {
  using Clock = std::chrono::steady_clock;
  start({}, 1);
  Client reads_late(port_);
  reads_late.send("GET /flood HTTP/1.1\r\nHost: localhost\r\n\r\n");
  ASSERT_TRUE(handler_.num_floods.try_acquire_for(std::chrono::seconds(20)));
  const auto flood = handler_.flood;
  const auto pause = [](int milliseconds) {
    std::this_thread::sleep_for(std::chrono::milliseconds(milliseconds));
  };
  const auto look = [&] {  // and others are answered once that is done
    flood->grow();
    Client other(port_);
    other.send("GET /quick HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
    other.read_all();
  };
  pause(500);  // the buffers are full by then
  const auto begun = Clock::now();
  for (int i = 0; i < 3; ++i) look();
  if (Clock::now() - begun < std::chrono::milliseconds(900)) {
    EXPECT_EQ(flood->num_blocked, 0) << "it may just have paused";
  }
  // Whoever reads in between has the time to fill them again.
  std::string buffer(1 << 20, '\0');
  for (std::size_t read = 0; read < std::size_t{64} << 20;) {
    const ssize_t count = ::recv(reads_late.handle(), buffer.data(), buffer.size(), 0);
    ASSERT_GT(count, 0);
    read += static_cast<std::size_t>(count);
  }
  const int before = flood->num_blocked;
  pause(500);
  const auto filled = Clock::now();
  look();
  if (Clock::now() - filled < std::chrono::milliseconds(900)) {
    EXPECT_EQ(flood->num_blocked, before);
  }
  // On a slow machine the buffers may still be filling.
  while (flood->num_blocked == before && Clock::now() - filled < std::chrono::seconds(20)) {
    pause(100);
    look();
  }
  EXPECT_GT(flood->num_blocked, before) << "full for more than a second";
  EXPECT_GT(Clock::now() - filled, std::chrono::milliseconds(900));
}

TEST_F(HttpServerTest, answers_preflights_where_origins_are_allowed) {
  allowed_origins_ = {"https://a.example"};
  start();
  Client client(port_);
  client.send(
      "OPTIONS /forbidden HTTP/1.1\r\nHost: localhost\r\nOrigin: https://a.example\r\n"
      "Access-Control-Request-Method: POST\r\n\r\n");
  const std::string answer = client.read_until("\r\n\r\n");
  EXPECT_THAT(answer, StartsWith("HTTP/1.1 204"));
  EXPECT_THAT(answer, HasSubstr("Access-Control-Allow-Origin: https://a.example\r\n"));
  EXPECT_THAT(answer, Not(HasSubstr("Content-Length")));
  client.send("GET /forbidden HTTP/1.1\r\nHost: localhost\r\nOrigin: https://a.example\r\n\r\n");
  EXPECT_THAT(client.read_until("\"no\""),
              HasSubstr("Access-Control-Allow-Origin: https://a.example\r\n"))
      << "errors can be read, too";
}

TEST_F(HttpServerTest, still_says_what_it_is_doing_while_it_drains) {
  start();
  Client busy(port_);
  busy.send("GET /later HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
  ASSERT_TRUE(handler_.num_later.try_acquire_for(std::chrono::seconds(20)));
  Client idle(port_);
  idle.send("GET /a HTTP/1.1\r\nHost: localhost\r\n\r\n");
  idle.read_until("GET /a");
  server_->drain();
  EXPECT_EQ(idle.read_all(), "");
  for (int i = 0; i < 3; ++i) {
    Client asks(port_);
    asks.send("GET /ready HTTP/1.1\r\nHost: localhost\r\n\r\n");
    const std::string answer = asks.read_all();
    EXPECT_THAT(answer, HasSubstr("GET /ready"));
    EXPECT_THAT(answer, HasSubstr("Connection: close"));
  }
  Client silent(port_);  // nobody waits for it
  handler_.later->answer();
  EXPECT_THAT(busy.read_all(), HasSubstr("later"));
  thread_.join();
}

TEST_F(HttpServerTest, drains_idle_connections_at_once_and_others_by_the_deadline) {
  start({.drain_s = 0.3});
  Client idle(port_);
  idle.send("GET /a HTTP/1.1\r\nHost: localhost\r\n\r\n");
  idle.read_until("GET /a");
  Client busy(port_);
  busy.send("GET /hang HTTP/1.1\r\nHost: localhost\r\n\r\n");
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
}  // namespace gauntlet::server::inline http
