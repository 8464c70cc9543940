// The client against a server whose every fault is scripted.
#include "load/http/client.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <nlohmann/json.hpp>
#include <set>

#include "load/http/null_server.h"
#include "load/overhead.h"

namespace gauntlet::load::inline http {
namespace {

using testing::HasSubstr;

std::unique_ptr<Client> client_of(const std::string& url, double timeout_s = 60) {
  auto client = Client::open({.url = *Url::parse(url), .api_key = "k", .timeout_s = timeout_s});
  EXPECT_TRUE(client);
  return std::move(*client);
}

RunOptions closed_loop(std::int64_t concurrency, std::int64_t num_requests) {
  return {.arrivals = {.kind = ArrivalKind::closed, .concurrency = concurrency},
          .workload = {.prompt_tokens = Lengths::fixed(8), .output_tokens = Lengths::fixed(5)},
          .form = {.model = "m"},
          .prompts = {.vocab = 100},
          .num_requests = num_requests};
}

/// Against a server of this script, which has ended when this returns.
RunLog run(const RunOptions& options, NullServer::Script script, double timeout_s = 60) {
  const NullServer server(std::move(script));
  return client_of(server.url(), timeout_s)->run(options);
}

/// One request answered in this way.
RequestRecord one(const NullAnswer& answer, double timeout_s = 60) {
  const RunLog log = run(closed_loop(1, 1), [&](const NullRequest&) { return answer; }, timeout_s);
  EXPECT_EQ(log.requests.size(), 1u);
  return log.requests.at(0);
}

TEST(Client, counts_tokens_and_times_of_a_stream) {
  const RequestRecord record = one({.num_tokens = 5, .interval_s = 0.005});
  EXPECT_TRUE(record.is_ok()) << record.words;
  EXPECT_EQ(record.num_events, 5);
  EXPECT_EQ(record.output_tokens, 5);
  EXPECT_EQ(record.prompt_tokens, 7);
  EXPECT_EQ(record.gaps_s.size(), 4u);
  EXPECT_LE(record.scheduled_s, record.sent_s);
  EXPECT_LT(record.sent_s, record.first_s);
  EXPECT_LT(record.first_s, record.end_s);
  double sum_s = 0;
  for (const float gap_s : record.gaps_s) sum_s += gap_s;
  EXPECT_LE(sum_s, record.end_s - record.first_s + 1e-6);
  // The server is never early, and the client sees no token before it is sent.
  EXPECT_GE(record.end_s - record.sent_s, 0.025);
}

TEST(Client, counts_events_where_the_server_counts_nothing) {
  const RequestRecord record = one({.num_tokens = 3, .has_usage = false});
  EXPECT_TRUE(record.is_ok());
  EXPECT_EQ(record.output_tokens, 3);
  EXPECT_FALSE(record.has_usage);
}

TEST(Client, tells_faults_apart) {
  EXPECT_EQ(one({.num_tokens = 9, .cut_after = 4}).outcome, Outcome::stream_cut);
  EXPECT_EQ(one({.num_tokens = 3, .has_done = false}).outcome, Outcome::protocol);
  EXPECT_EQ(one({.body = "hello"}).outcome, Outcome::protocol);
  EXPECT_EQ(one({.num_tokens = 100, .interval_s = 0.05}, 0.12).outcome, Outcome::timeout);
  const RequestRecord full = one({.status = 429, .body = R"({"error":{"message":"too many"}})"});
  EXPECT_EQ(full.error_name(), "http 429");
  EXPECT_EQ(full.words, "too many");
  const RequestRecord fault = one({.num_tokens = 9, .error_after = 2});
  EXPECT_EQ(fault.outcome, Outcome::server_error);
  EXPECT_EQ(fault.words, "a fault in the middle");
}

TEST(Client, says_that_nobody_listens) {
  std::string url;
  {
    const NullServer gone([](const NullRequest&) { return NullAnswer{}; });
    url = gone.url();
  }
  const auto client = client_of(url);
  EXPECT_EQ(client->run(closed_loop(1, 1)).requests.at(0).outcome, Outcome::connect);
  const auto answer = client->ask("/v1/models", std::nullopt);
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().kind, ErrorKind::environment);
}

TEST(Client, sends_every_request_of_a_closed_loop_once_and_reuses_connections) {
  std::set<std::string> bodies;
  std::int64_t count = 0;
  const RunLog log = run(closed_loop(4, 70), [&](const NullRequest& request) {
    bodies.insert(request.body);
    ++count;
    // Now and then the connection breaks, and the next request finds it so.
    return NullAnswer{.num_tokens = 3, .cut_after = request.index % 7 == 6 ? 1 : -1};
  });
  ASSERT_EQ(log.requests.size(), 70u);
  EXPECT_EQ(count, 70);
  EXPECT_EQ(bodies.size(), 70u);
  EXPECT_EQ(std::ranges::count(log.requests, Outcome::stream_cut, &RequestRecord::outcome), 10);
  EXPECT_EQ(std::ranges::count(log.requests, Outcome::ok, &RequestRecord::outcome), 60);
  const PointResult point = summarize(log, {.kind = ArrivalKind::closed}, {}, 1);
  EXPECT_LE(point.concurrency_max, 4);
}

TEST(Client, sends_by_the_clock_however_slow_the_server_is) {
  // 40 requests are due within 0.2 s; the server holds each for 0.3 s.
  RunOptions options = closed_loop(1, 40);
  options.arrivals = {.kind = ArrivalKind::fixed, .rate_per_s = 200};
  const RunLog log = run(
      options, [](const NullRequest&) { return NullAnswer{.num_tokens = 1, .interval_s = 0.3}; });
  ASSERT_EQ(log.requests.size(), 40u);
  for (std::size_t i = 0; i < log.requests.size(); ++i) {
    EXPECT_NEAR(log.requests[i].scheduled_s, 0.005 * static_cast<double>(i), 1e-9);
    EXPECT_GE(log.requests[i].sent_s, log.requests[i].scheduled_s);
  }
  EXPECT_GT(summarize(log, options.arrivals, {}, 1).concurrency_max, 1);
}

TEST(Client, keeps_the_warm_up_apart_and_ends_by_time) {
  RunOptions options = closed_loop(1, 0);
  options.arrivals = {.kind = ArrivalKind::fixed, .rate_per_s = 100};
  options.num_warmup = 5;
  options.duration_s = 0.1;
  const RunLog log = run(options, [](const NullRequest&) { return NullAnswer{.num_tokens = 2}; });
  EXPECT_EQ(log.num_warmup, 5);
  EXPECT_EQ(log.requests.size(), 5u + 11u);  // at 0, 0.01, ... 0.1 after the warm-up
}

TEST(Client, follows_a_trace_to_its_end) {
  std::vector<std::string> bodies;
  RunOptions options = closed_loop(1, 0);
  options.arrivals = {.kind = ArrivalKind::trace};
  options.workload.trace = {{.at_s = 0, .prompt = "hello", .output_tokens = 3},
                            {.at_s = 0.02, .prompt_tokens = 4, .output_tokens = 2}};
  const RunLog log = run(options, [&](const NullRequest& request) {
    bodies.push_back(request.body);
    return NullAnswer{.num_tokens = 2};
  });
  ASSERT_EQ(log.requests.size(), 2u);
  EXPECT_EQ(log.requests[1].scheduled_s, 0.02);
  EXPECT_THAT(bodies[0], HasSubstr(R"("prompt":"hello","max_tokens":3)"));
}

TEST(Client, stops_when_told_to) {
  const std::atomic<bool> stop{true};
  RunOptions options = closed_loop(3, 100);
  options.stop = &stop;
  const RunLog log = run(
      options, [](const NullRequest&) { return NullAnswer{.num_tokens = 1000, .interval_s = 1}; });
  EXPECT_TRUE(log.is_interrupted);
  ASSERT_EQ(log.requests.size(), 3u);
  for (const RequestRecord& record : log.requests) {
    EXPECT_EQ(record.outcome, Outcome::interrupted);
  }
}

TEST(Client, can_be_used_for_one_run_after_another) {
  const NullServer server([](const NullRequest&) { return NullAnswer{.num_tokens = 2}; });
  const auto client = client_of(server.url());
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(client->run(closed_loop(2, 6)).requests.size(), 6u);
  }
}

TEST(Overhead, sees_every_token_of_every_stream_and_its_own_cost) {
  const auto result = measure_overhead({.num_streams = 50, .num_tokens = 6, .interval_s = 0.01});
  ASSERT_TRUE(result);
  EXPECT_EQ(result->num_failed, 0);
  EXPECT_EQ(result->num_events, 300);
  EXPECT_GT(result->cpu_us_per_event, 0);
  EXPECT_GT(result->delay_s.median.value, 0);
  const auto json = nlohmann::json::parse(json_text({}, *result));
  EXPECT_EQ(json["events"], 300);
}

}  // namespace
}  // namespace gauntlet::load::inline http
