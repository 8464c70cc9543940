// Endpoints, engine and sockets together: what a client's leaving and an executor's end come to.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <mutex>
#include <semaphore>
#include <stdexcept>
#include <thread>

#include "engine/steps/fake_executor.h"
#include "engine/tiny_tokenizer.h"
#include "server/engine_loop.h"
#include "server/http/http_server.h"
#include "server/http/test_client.h"
#include "server/openai/api.h"

namespace gauntlet::server {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

class ServingTest : public ::testing::Test {  // NOLINT(cppcoreguidelines-virtual-class-destructor)
 protected:
  ServingTest() {
    executor_.next = [](const engine::FakeExecutor::History& history) {
      return (history.back() + 1) % 1000;
    };
    auto server = HttpServer::listen({.port = 0,
                                      .log =
                                          [this](std::string_view line) {
                                            const std::lock_guard lock(mutex_);
                                            log_ += std::string(line) + "\n";
                                          }},
                                     api_);
    server_ = std::move(server.value());
    thread_ = std::thread([this] { server_->run(Signals::left_alone); });
  }
  ~ServingTest() override {
    server_->stop();
    thread_.join();
  }

  static model::ModelConfig config() {
    model::ModelConfig config;
    config.name = "tiny";
    config.vocab = engine::tiny_tokenizer().vocab_size();
    config.max_positions = 2000;
    return config;
  }
  static std::string post(const std::string& body) {
    return "POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nConnection: "
           "close\r\nContent-Length: " +
           std::to_string(body.size()) + "\r\n\r\n" + body;
  }
  static std::string get(const std::string& path) {
    return "GET " + path + " HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
  }
  std::string ask(const std::string& request) {
    Client client(server_->port());
    client.send(request);
    return client.read_all();
  }
  template <class Condition>
  static void wait_until(const Condition& holds) {
    for (int i = 0; i < 2000 && !holds(); ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    EXPECT_TRUE(holds());
  }
  std::string log() {
    const std::lock_guard lock(mutex_);
    return log_;
  }

  engine::FakeExecutor executor_{config(), 512};
  engine::Service service_{executor_,
                           {.scheduler = {.prefix_caching = engine::PrefixCaching::off}}};
  ServerMetrics metrics_;
  Api api_{{.model = {.name = "tiny", .vocab = config().vocab}},
           service_,
           engine::tiny_tokenizer(),
           metrics_};
  std::mutex mutex_;
  std::string log_;
  std::unique_ptr<HttpServer> server_;
  std::thread thread_;
};

TEST_F(ServingTest, frees_the_pages_of_a_client_that_left_within_one_step) {
  for (const char* fields : {R"("stream": true)", R"("stream": false)", R"("n": 5)"}) {
    {
      Client client(server_->port());
      client.send(post(R"({"prompt": [1, 2, 3], "max_tokens": 900, )" + std::string(fields) + "}"));
      wait_until([&] { return service_.stats().num_waiting > 0; });
      for (int i = 0; i < 5; ++i) service_.step();
      EXPECT_LT(executor_.kv().free_pages(engine::KvGroup::full), 1000);
    }
    wait_until([&] { return log().find("abandoned") != std::string::npos; });
    EXPECT_GT(executor_.kv().num_sequences(), 0) << "no step was taken yet";
    service_.step();
    EXPECT_EQ(executor_.kv().num_sequences(), 0);
    EXPECT_EQ(executor_.kv().free_pages(engine::KvGroup::full), 1000);
    EXPECT_EQ(executor_.kv().free_pages(engine::KvGroup::sliding), 1000);
    EXPECT_EQ(service_.check_integrity(), "");
    const std::lock_guard lock(mutex_);
    log_.clear();
  }
}

/// Endpoints with one more, which keeps the thread that reads and writes busy for a while.
class Stalling final : public Handler {
 public:
  explicit Stalling(Api& api) : api_(api) {}
  Admission admit(const HttpRequest& head) override {
    if (head.target == "/stall") return {.work = Admission::Work::quick};
    return api_.admit(head);
  }
  std::shared_ptr<Reply> handle(const HttpRequest& request) override {
    if (request.target != "/stall") return api_.handle(request);
    has_begun.release();
    let_go.acquire();
    return make_reply({}, "stalled");
  }
  std::binary_semaphore has_begun{0};
  std::binary_semaphore let_go{0};

 private:
  Api& api_;
};

TEST_F(ServingTest, blames_no_reader_for_a_time_in_which_its_own_thread_was_busy) {
  Api tight({.model = {.name = "tiny", .vocab = config().vocab}, .max_pending = 4}, service_,
            engine::tiny_tokenizer(), metrics_);
  Stalling stalling(tight);
  const auto server = std::move(HttpServer::listen({.port = 0, .threads = 1}, stalling).value());
  std::thread serves([&] { server->run(Signals::left_alone); });
  {
    Client reads(server->port());
    reads.send(post(R"({"prompt": [1, 2, 3], "max_tokens": 500, "stream": true})"));
    wait_until([&] { return service_.stats().num_waiting > 0; });
    service_.step();
    EXPECT_THAT(reads.read_until("data: "), HasSubstr("200 OK"));
    Client stalls(server->port());
    stalls.send(get("/stall"));
    stalling.has_begun.acquire();
    while (service_.step()) {  // far more than may wait for a slow reader
    }
    stalling.let_go.release();
    const std::string rest = reads.read_all();
    EXPECT_THAT(rest, Not(HasSubstr("too slow")));
    EXPECT_THAT(rest, HasSubstr("[DONE]"));
  }
  server->stop();
  serves.join();
}

TEST_F(ServingTest, ends_a_reader_whose_socket_stays_full) {
  Api tight({.model = {.name = "tiny", .vocab = config().vocab}, .max_pending = 4}, service_,
            engine::tiny_tokenizer(), metrics_);
  const auto server =
      std::move(HttpServer::listen({.port = 0, .stream_interval_s = 0}, tight).value());
  std::thread serves([&] { server->run(Signals::left_alone); });
  {
    Client sleeps(server->port());
    const int few = 2048;
    setsockopt(sleeps.handle(), SOL_SOCKET, SO_RCVBUF, &few, sizeof(few));
    // Many choices with long words about each: more than the sockets' buffers hold.
    sleeps.send(post(R"({"prompt": [1, 2, 3], "max_tokens": 1900, "n": 64, "logprobs": 20,
                         "stream": true})"));
    wait_until([&] { return service_.stats().num_waiting > 0; });
    int num_steps = 0;
    while (service_.step()) {
      ++num_steps;
      // So that what fills is the socket, not the queue of a server that has no time.
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    EXPECT_LT(num_steps, 1900) << "its request ended early";
  }
  EXPECT_EQ(service_.stats().num_running, 0);
  EXPECT_EQ(service_.check_integrity(), "");
  server->stop();
  serves.join();
}

/// Endpoints whose replies are watched: what is put together where, and how much of it.
class Watching final : public Handler {
 public:
  explicit Watching(Api& api) : api_(api) {}
  Admission admit(const HttpRequest& head) override { return api_.admit(head); }
  std::size_t weight(const HttpRequest& request) override { return api_.weight(request); }
  std::shared_ptr<Reply> handle(const HttpRequest& request) override {
    if (std::this_thread::get_id() == sockets) ++num_handled_by_sockets;
    return std::make_shared<Watched>(*this, api_.handle(request));
  }

  std::thread::id sockets;  // the thread that moves bytes
  std::atomic<int> num_handled_by_sockets{0};
  std::atomic<std::size_t> most_effort{0};  // told to that thread before it took
  std::atomic<int> num_taken_by_workers{0};
  std::atomic<std::size_t> largest_piece{0};

 private:
  class Watched final : public Reply {
   public:
    Watched(Watching& watching, std::shared_ptr<Reply> reply)
        : watching_(watching), reply_(std::move(reply)) {}
    void on_ready(std::function<void()> wake) override { reply_->on_ready(std::move(wake)); }
    std::size_t effort() const override { return told_ = reply_->effort(); }
    std::optional<Piece> take() override {
      // What the engine adds after effort() was asked is taken as well: the piece's size bounds it.
      if (std::this_thread::get_id() == watching_.sockets) {
        watching_.most_effort = std::max(watching_.most_effort.load(), told_);
      } else {
        ++watching_.num_taken_by_workers;
      }
      auto piece = reply_->take();
      if (piece) {
        watching_.largest_piece = std::max(watching_.largest_piece.load(), piece->body.size());
      }
      return piece;
    }
    void abandon() override { reply_->abandon(); }
    void reader_is_blocked() override { reply_->reader_is_blocked(); }
    std::optional<ReplySummary> summary() const override { return reply_->summary(); }

   private:
    Watching& watching_;
    const std::shared_ptr<Reply> reply_;
    mutable std::size_t told_ = 0;  // one thread at a time asks and takes
  };
  Api& api_;
};

TEST_F(ServingTest, puts_large_answers_together_in_pieces_and_by_workers) {
  Watching watching(api_);
  const auto server = std::move(HttpServer::listen({.port = 0, .threads = 1}, watching).value());
  std::thread serves([&] { server->run(Signals::left_alone); });
  watching.sockets = serves.get_id();
  {
    const EngineLoop loop(service_, metrics_, [](const std::string&) {});
    for (const std::string fields : {R"("stream": false)", R"("stream": true)"}) {
      Client client(server->port());
      client.send(post(R"({"prompt": [1, 2, 3], "max_tokens": 120, "n": 16, "logprobs": 20, )" +
                       fields + "}"));
      const std::string answer = client.read_all();
      EXPECT_THAT(answer.substr(0, 200), HasSubstr("200 OK"));
      EXPECT_GT(answer.size(), 16u * 120 * 21 * 10) << fields;
      EXPECT_THAT(answer.substr(answer.size() - 400),
                  HasSubstr(fields.ends_with("true}") ? "[DONE]" : "0\r\n\r\n"));
    }
    Client text(server->port());
    text.send(post(R"({"prompt": [1, 2, 3], "max_tokens": 1500, "n": 32})"));
    EXPECT_THAT(text.read_all(), HasSubstr(R"("completion_tokens":48000)"));
  }
  server->stop();
  serves.join();
  EXPECT_EQ(watching.num_handled_by_sockets, 0);
  EXPECT_GT(watching.num_taken_by_workers, 0);
  EXPECT_LE(watching.most_effort, std::size_t{16} << 10);
  EXPECT_LE(watching.largest_piece, std::size_t{256} << 10);
}

TEST_F(ServingTest, rests_once_when_its_work_runs_out) {
  using Clock = std::chrono::steady_clock;
  const auto deadline = Clock::now() + std::chrono::seconds(20);
  std::atomic<bool> ends{false};
  int finished = 0, rests = 0, idle = 0;
  const auto submit = [&] {
    ASSERT_TRUE(service_.submit({.prompt = {1, 2, 3}, .max_tokens = 4},
                                {.on_finish = [&](const engine::FinishEvent&) { ++finished; }}));
  };
  submit();
  step_until(ends, service_, metrics_,
             {.on_failure = [](const std::string& why) { ADD_FAILURE() << why; },
              .between_steps =
                  [&] {
                    idle += rests == 2 ? 1 : 0;
                    ends = idle == 4 || Clock::now() > deadline;
                  },
              .at_rest =
                  [&] {
                    EXPECT_EQ(finished, ++rests) << "its tokens were told before";
                    if (rests == 1) submit();
                  }});
  EXPECT_EQ(rests, 2);
}

TEST_F(ServingTest, says_that_its_engine_failed_instead_of_hanging) {
  std::atomic<bool> is_broken = false;
  executor_.before_step = [&] {
    if (is_broken) throw std::runtime_error("the device is lost");
  };
  const EngineLoop loop(service_, metrics_,
                        [&](const std::string&) { api_.set_state(Api::State::failed); });
  const std::string body = R"({"prompt": [1, 2, 3], "max_tokens": 5})";
  EXPECT_THAT(ask(post(body)), HasSubstr("200 OK"));
  EXPECT_THAT(ask(get("/health")), HasSubstr("200 OK"));
  Client streams(server_->port());
  streams.send(post(R"({"prompt": [1], "max_tokens": 1900, "stream": true})"));
  streams.read_until("data: ");
  is_broken = true;
  EXPECT_THAT(streams.read_all(), HasSubstr("the device is lost"));
  wait_until([&] { return ask(get("/health")).find("HTTP/1.1 503") != std::string::npos; });
  EXPECT_THAT(ask(get("/ready")), HasSubstr("HTTP/1.1 503"));
  EXPECT_THAT(ask(post(body)), HasSubstr("HTTP/1.1 503"));
  EXPECT_THAT(ask(get("/metrics")), HasSubstr("gauntlet:num_requests_running"));
}

}  // namespace
}  // namespace gauntlet::server
