// Requests whose handling takes long: do others notice?
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <memory>
#include <thread>
#include <vector>

#include "server/http/http_server_fixture.h"

namespace gauntlet::server::inline http {
namespace {

using ::testing::HasSubstr;

using SlowWorkTest = HttpServerTest;

TEST_F(SlowWorkTest, answers_others_while_small_bodies_take_long) {
  start({}, 1);
  // As many as there are workers, and one more.
  std::vector<std::unique_ptr<Client>> slow;
  for (int i = 0; i < 4; ++i) {
    slow.push_back(std::make_unique<Client>(port_));
    slow.back()->send("POST /block HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\n\r\n{}");
  }
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(handler_.blocks.try_acquire_for(std::chrono::seconds(20)));
  }
  for (int i = 0; i < 20; ++i) {
    Client other(port_);
    other.send("GET /quick HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
    EXPECT_THAT(other.read_all(), HasSubstr("GET /quick"));
  }
  handler_.let_go.release(4);
  for (const auto& client : slow) {
    EXPECT_THAT(client->read_until("POST /block"), HasSubstr("200 OK"));
  }
}

TEST_F(SlowWorkTest, streams_on_while_four_clients_send_bodies_that_take_long) {
  constexpr double kInterval_s = 0.02;
  start({}, 1, kInterval_s);
  std::atomic<bool> ends = false;
  std::vector<std::thread> attackers;
  for (int i = 0; i < 4; ++i) {
    attackers.emplace_back([&] {
      while (!ends) {
        Client client(port_);
        client.send(
            "POST /slow HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
            "Content-Length: 2\r\n\r\n{}");
        client.read_all();
      }
    });
  }
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  std::vector<double> gaps_s, answers_s;
  const auto now_s = [] {
    return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch())
        .count();
  };
  for (int i = 0; i < 5; ++i) {
    const double asked = now_s();
    Client health(port_);
    health.send("GET /quick HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
    health.read_all();
    answers_s.push_back(now_s() - asked);
  }
  // Admitted before: what is left of it is bytes.
  Client stream(port_);
  stream.send("GET /count HTTP/1.1\r\nHost: localhost\r\n\r\n");
  stream.read_until("data: 1");
  for (int i = 2; i <= 5; ++i) {
    const double before = now_s();
    stream.read_until("data: " + std::to_string(i));
    gaps_s.push_back(now_s() - before);
  }
  ends = true;
  for (std::thread& attacker : attackers) attacker.join();
  // A body takes 0.3 s: on the thread of the sockets, everybody would have waited for some of them.
  std::ranges::sort(gaps_s);
  std::ranges::sort(answers_s);
  EXPECT_LT(answers_s[answers_s.size() / 2], 0.15);
  EXPECT_LT(gaps_s[gaps_s.size() / 2], 0.15);
}

TEST_F(SlowWorkTest, refuses_what_would_wait_too_long_to_be_worked_on) {
  start({.work = {.jobs = 2, .jobs_of_client = 1}}, 1);
  const auto request = [](const char* key) {
    return "POST /block HTTP/1.1\r\nHost: localhost\r\nAuthorization: " + std::string(key) +
           "\r\nContent-Length: 2\r\n\r\n{}";
  };
  std::vector<std::unique_ptr<Client>> held;
  const auto hold = [&](const char* key) {
    held.push_back(std::make_unique<Client>(port_));
    held.back()->send(request(key));
  };
  for (const char* key : {"a", "b", "c"}) {
    hold(key);
    ASSERT_TRUE(handler_.blocks.try_acquire_for(std::chrono::seconds(20))) << key;
  }
  // What was sent before has been read when the thread of the sockets has answered others since.
  const auto pass = [&] {
    for (int i = 0; i < 5; ++i) {
      Client client(port_);
      client.send("GET /quick HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
      client.read_all();
    }
  };
  const auto answer_to = [&](const char* key) {
    Client client(port_);
    client.send(request(key));
    return client.read_until("}}");
  };
  hold("a");
  pass();
  const std::string too_many = answer_to("a");
  EXPECT_THAT(too_many, HasSubstr("HTTP/1.1 429"));
  EXPECT_THAT(too_many, HasSubstr("Retry-After: 1"));
  hold("b");
  pass();
  const std::string full = answer_to("d");
  EXPECT_THAT(full, HasSubstr("HTTP/1.1 503"));
  EXPECT_THAT(full, HasSubstr("Retry-After: 1"));
  handler_.let_go.release(64);
  for (const auto& client : held) {
    EXPECT_THAT(client->read_until("POST /block"), HasSubstr("200 OK"));
  }
}

TEST_F(SlowWorkTest, answers_others_while_a_large_body_is_worked_on) {
  start({}, 1);
  Client large(port_);
  large.send("POST /block HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100000\r\n\r\n" +
             std::string(100000, 'a'));
  for (int i = 0; i < 20; ++i) {
    Client other(port_);
    other.send("GET /a HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
    EXPECT_THAT(other.read_all(), HasSubstr("GET /a"));
  }
  handler_.let_go.release();
  EXPECT_THAT(large.read_until("POST /block"), HasSubstr("200 OK"));
}

}  // namespace
}  // namespace gauntlet::server::inline http
