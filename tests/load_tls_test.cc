// Does the load client measure the real server behind TLS, and does it refuse whom it must?
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <atomic>
#include <future>
#include <memory>
#include <string>
#include <thread>

#include "load/client.h"
#include "load/null_server.h"
#include "server/http/http_server.h"
#include "server/http/test_certificate.h"

namespace gauntlet::tests {
namespace {

using load::Certificates;
using load::Outcome;
using load::RequestRecord;
using testing::HasSubstr;
using testing::StartsWith;

constexpr int kTokens = 5;

/// Answers every request with a stream of kTokens tokens. One that stalls says two and no more.
class StreamHandler final : public server::Handler {
 public:
  enum class Streams { end, stall };
  explicit StreamHandler(Streams streams) : streams_(streams) {}

  std::shared_ptr<server::Reply> handle(const server::HttpRequest&) override {
    if (streams_ == Streams::end) return std::make_shared<Stream>(kTokens, kTokens, num_said_);
    return std::make_shared<Stream>(kTokens, 2, num_said_);
  }
  /// Tokens of all streams.
  int num_said() const { return num_said_; }

 private:
  class Stream final : public server::Reply {
   public:
    Stream(int tokens, int stalls_after, std::atomic<int>& num_said)
        : tokens_(tokens), stalls_after_(stalls_after), num_said_(num_said) {}
    void on_ready(std::function<void()>) override {}
    std::optional<server::Piece> take() override {
      server::Piece piece;
      if (said_ == 0) piece.head = server::HttpHead{.content_type = "text/event-stream"};
      if (said_ == tokens_) {
        piece.body = "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":8,\"completion_tokens\":" +
                     std::to_string(tokens_) + "}}\n\ndata: [DONE]\n\n";
        piece.is_last = true;
        return piece;
      }
      if (said_ == stalls_after_) return std::nullopt;
      piece.body = "data: {\"choices\":[{\"index\":0,\"text\":\"a\"}]}\n\n";
      ++said_;
      ++num_said_;
      return piece;
    }
    void abandon() override {}

   private:
    const int tokens_, stalls_after_;
    std::atomic<int>& num_said_;
    int said_ = 0;
  };

  Streams streams_;
  std::atomic<int> num_said_{0};
};

/// The server behind TLS on a port of its own, until it is stopped or destroyed.
class TlsServer {
 public:
  explicit TlsServer(StreamHandler::Streams streams = StreamHandler::Streams::end)
      : handler_(streams) {
    auto server = server::HttpServer::listen(
        {.port = 0, .tls_certificate = certificate_.path(), .tls_key = certificate_.key_path()},
        handler_);
    server_ = std::move(server.value());
    thread_ = std::thread([this] { server_->run(server::Signals::left_alone); });
  }
  ~TlsServer() { stop(); }
  TlsServer(const TlsServer&) = delete;
  TlsServer& operator=(const TlsServer&) = delete;

  std::string url(const std::string& scheme, const std::string& host) const {
    return scheme + "://" + host + ":" + std::to_string(server_->port());
  }
  const server::Certificate& certificate() const { return certificate_; }
  const StreamHandler& handler() const { return handler_; }
  /// Cuts every connection.
  void stop() {
    if (!server_) return;
    server_->stop();
    thread_.join();
    server_.reset();
  }

 private:
  server::Certificate certificate_;
  StreamHandler handler_;
  std::unique_ptr<server::HttpServer> server_;
  std::thread thread_;
};

/// A variable of the environment, for as long as this lives.
class ScopedVariable {
 public:
  ScopedVariable(const char* name, const std::string& value) : name_(name) {
    setenv(name, value.c_str(), 1);
  }
  ~ScopedVariable() { unsetenv(name_); }
  ScopedVariable(const ScopedVariable&) = delete;
  ScopedVariable& operator=(const ScopedVariable&) = delete;

 private:
  const char* name_;
};

load::RunOptions closed_loop(std::int64_t concurrency, std::int64_t num_requests) {
  return {.arrivals = {.kind = load::ArrivalKind::closed, .concurrency = concurrency},
          .workload = {.prompt_tokens = load::Lengths::fixed(8),
                       .output_tokens = load::Lengths::fixed(kTokens)},
          .form = {.model = "m"},
          .prompts = {.vocab = 100},
          .num_requests = num_requests};
}

std::unique_ptr<load::Client> client_of(const std::string& url, Certificates certificates,
                                        double timeout_s = 60) {
  auto client = load::Client::open(
      {.url = *load::Url::parse(url), .certificates = certificates, .timeout_s = timeout_s});
  return std::move(client.value());
}

RequestRecord one(const std::string& url, Certificates certificates, double timeout_s = 60) {
  return client_of(url, certificates, timeout_s)->run(closed_loop(1, 1)).requests.at(0);
}

TEST(LoadOverTls, hears_every_token_of_streams_side_by_side) {
  const TlsServer server;
  const auto client = client_of(server.url("https", "127.0.0.1"), Certificates::any);
  const load::RunLog log = client->run(closed_loop(4, 40));
  ASSERT_EQ(log.requests.size(), 40u);
  for (const RequestRecord& record : log.requests) {
    EXPECT_TRUE(record.is_ok()) << record.words;
    EXPECT_EQ(record.output_tokens, kTokens);
    EXPECT_EQ(record.prompt_tokens, 8);
    EXPECT_TRUE(record.has_usage);
  }
  EXPECT_EQ(server.handler().num_said(), 40 * kTokens);
}

TEST(LoadOverTls, refuses_a_certificate_that_nobody_vouches_for) {
  const TlsServer server;
  const RequestRecord record = one(server.url("https", "localhost"), Certificates::verified);
  EXPECT_EQ(record.outcome, Outcome::connect);
  EXPECT_THAT(record.words, StartsWith("TLS: "));
  EXPECT_THAT(record.words, HasSubstr("verify failed"));
  EXPECT_EQ(server.handler().num_said(), 0);
}

TEST(LoadOverTls, takes_a_trusted_certificate_for_the_name_in_it_only) {
  const TlsServer server;
  const ScopedVariable trusted("SSL_CERT_FILE", server.certificate().path());
  const RequestRecord own = one(server.url("https", "localhost"), Certificates::verified);
  EXPECT_TRUE(own.is_ok()) << own.words;
  const RequestRecord other = one(server.url("https", "127.0.0.1"), Certificates::verified);
  EXPECT_EQ(other.outcome, Outcome::connect);
  EXPECT_THAT(other.words, HasSubstr("verify failed"));
}

TEST(LoadOverTls, tells_a_cut_stream_from_one_that_is_late) {
  TlsServer server(StreamHandler::Streams::stall);
  const std::string url = server.url("https", "127.0.0.1");
  const RequestRecord late = one(url, Certificates::any, 0.3);
  EXPECT_EQ(late.outcome, Outcome::timeout) << late.words;
  std::promise<void> heard;
  load::RunOptions options = closed_loop(1, 1);
  options.on_event = [&, num_events = 0](std::string_view, auto) mutable {
    if (++num_events == 2) heard.set_value();
  };
  auto log = std::async(std::launch::async,
                        [&] { return client_of(url, Certificates::any)->run(options); });
  heard.get_future().wait();
  server.stop();
  const RequestRecord record = log.get().requests.at(0);
  EXPECT_EQ(record.outcome, Outcome::stream_cut) << record.words;
  EXPECT_FALSE(record.words.empty());
}

TEST(LoadOverTls, says_so_where_one_side_speaks_plainly) {
  const TlsServer server;
  EXPECT_FALSE(one(server.url("http", "127.0.0.1"), Certificates::any).is_ok());
  const load::NullServer plain([](const load::NullRequest&) { return load::NullAnswer{}; });
  const RequestRecord record =
      one("https://127.0.0.1:" + std::to_string(plain.port()), Certificates::any);
  EXPECT_EQ(record.outcome, Outcome::connect);
  EXPECT_THAT(record.words, StartsWith("TLS: "));
}

}  // namespace
}  // namespace gauntlet::tests
