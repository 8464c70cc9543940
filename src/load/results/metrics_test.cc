// Figures of timelines made by hand, where each is known.
#include "load/results/metrics.h"

#include <gtest/gtest.h>

namespace gauntlet::load::inline results {
namespace {

/// Tokens at first_s, then every gap_s.
RequestRecord answered(std::int64_t index, double due_s, double first_s, float gap_s, int tokens) {
  RequestRecord record{.index = index,
                       .scheduled_s = due_s,
                       .sent_s = due_s,
                       .first_s = first_s,
                       .end_s = first_s + gap_s * static_cast<float>(tokens - 1),
                       .gaps_s = std::vector<float>(static_cast<std::size_t>(tokens - 1), gap_s),
                       .num_events = tokens,
                       .prompt_tokens = 10,
                       .output_tokens = tokens,
                       .has_usage = true,
                       .http_status = 200};
  return record;
}

constexpr ArrivalSpec kOpen{.kind = ArrivalKind::fixed, .rate_per_s = 1};

TEST(Metrics, are_what_a_timeline_says) {
  RunLog log;
  log.requests = {answered(0, 0, 0.5, 0.25f, 5),    // ends at 1.5
                  answered(1, 1, 1.25, 0.125f, 7),  // ends at 2
                  answered(2, 2, 3, 0.5f, 3)};      // ends at 4
  log.client_cpu_s = 15e-6;
  const PointResult point = summarize(log, kOpen, {.ttft_s = 0.6, .tpot_s = 0.3}, 1);
  EXPECT_EQ(point.num_requests, 3);
  EXPECT_EQ(point.num_ok, 3);
  EXPECT_EQ(point.output_tokens, 15);
  EXPECT_DOUBLE_EQ(point.window_s, 4);
  EXPECT_DOUBLE_EQ(point.offered_per_s, 1);
  EXPECT_NEAR(point.requests_per_s.value, 0.75, 1e-9);
  EXPECT_NEAR(point.output_tokens_per_s.value, 15.0 / 4, 1e-9);
  EXPECT_NEAR(point.total_tokens_per_s.value, 45.0 / 4, 1e-9);
  EXPECT_DOUBLE_EQ(point.ttft_s.median.value, 0.5);
  EXPECT_DOUBLE_EQ(point.ttft_s.max, 1);
  EXPECT_DOUBLE_EQ(point.tpot_s.median.value, 0.25);
  EXPECT_DOUBLE_EQ(point.tpot_s.mean.value, (0.25 + 0.125 + 0.5) / 3);
  EXPECT_EQ(point.itl_s.count, 12);
  EXPECT_DOUBLE_EQ(point.itl_s.mean.value, (4 * 0.25 + 6 * 0.125 + 2 * 0.5) / 12);
  EXPECT_DOUBLE_EQ(point.e2e_s.median.value, 1.5);
  EXPECT_DOUBLE_EQ(point.e2e_s.max, 2);
  // The third misses both limits.
  EXPECT_NEAR(point.good_share.value, 2.0 / 3, 1e-9);
  EXPECT_NEAR(point.goodput_per_s.value, 2.0 / 3, 1e-9);
  EXPECT_EQ(point.concurrency_max, 2);
  EXPECT_DOUBLE_EQ(point.concurrency_mean, (1.5 + 1 + 2) / 4);
  EXPECT_NEAR(point.client_us_per_event, 1, 1e-9);
}

TEST(Metrics, count_latency_from_when_a_request_was_due_not_from_when_it_was_sent) {
  RunLog log;
  log.requests = {answered(0, 0, 3, 0.1f, 2)};
  log.requests[0].sent_s = 2;
  const PointResult point = summarize(log, kOpen, {}, 1);
  EXPECT_DOUBLE_EQ(point.ttft_s.median.value, 3);
  EXPECT_DOUBLE_EQ(point.send_lag_s.median.value, 2);
}

TEST(Metrics, leave_out_the_warm_up_and_what_was_interrupted) {
  RunLog log;
  log.requests = {answered(0, 0, 9, 0.1f, 2), answered(1, 10, 10.5, 0.1f, 2),
                  answered(2, 11, 11.5, 0.1f, 2)};
  log.requests[2].outcome = Outcome::interrupted;
  log.num_warmup = 1;
  const PointResult point = summarize(log, kOpen, {}, 1);
  EXPECT_EQ(point.num_requests, 1);
  EXPECT_DOUBLE_EQ(point.ttft_s.max, 0.5);
  EXPECT_TRUE(point.errors.empty());
}

TEST(Metrics, name_errors_and_count_them_as_not_good) {
  RunLog log;
  for (int i = 0; i < 4; ++i) log.requests.push_back(answered(i, i, i + 0.5, 0.1f, 2));
  log.requests[1].outcome = Outcome::http_status;
  log.requests[1].http_status = 429;
  log.requests[1].words = "full";
  log.requests[2].outcome = Outcome::timeout;
  const PointResult point = summarize(log, kOpen, {.ttft_s = 1}, 1);
  EXPECT_EQ(point.num_ok, 2);
  EXPECT_EQ(point.errors.at("http 429").count, 1);
  EXPECT_EQ(point.errors.at("http 429").example, "full");
  EXPECT_EQ(point.errors.at("timeout").count, 1);
  EXPECT_DOUBLE_EQ(point.good_share.value, 0.5);
  EXPECT_DOUBLE_EQ(point.goodput_per_s.value, 0.5);
  EXPECT_EQ(point.ttft_s.count, 2);
}

TEST(Metrics, have_no_tpot_and_no_itl_of_single_tokens) {
  RunLog log;
  log.requests = {answered(0, 0, 1, 0, 1)};
  const PointResult point = summarize(log, kOpen, {.tpot_s = 0.01}, 1);
  EXPECT_EQ(point.tpot_s.count, 0);
  EXPECT_EQ(point.itl_s.count, 0);
  EXPECT_DOUBLE_EQ(point.good_share.value, 1);
}

TEST(Metrics, know_the_steady_rate_of_an_overload_from_its_window) {
  // One request comes each second; an answer of 10 tokens takes two seconds, one at a time.
  RunLog log;
  for (int i = 0; i < 100; ++i) {
    log.requests.push_back(answered(i, i, 2 * i + 0.2, 0.2f, 10));
  }
  const PointResult point = summarize(log, kOpen, {}, 1);
  EXPECT_NEAR(point.offered_per_s, 1, 1e-9);
  ASSERT_TRUE(point.steady);
  EXPECT_NEAR(point.steady->requests_per_s.value, 0.5, 0.03);
  EXPECT_NEAR(point.steady->output_tokens_per_s.value, 5, 0.3);
}

TEST(Metrics, spread_tokens_over_events_that_carry_several) {
  RunLog log;
  log.requests = {answered(0, 0, 1, 0.5f, 3)};
  log.requests[0].output_tokens = 6;
  const PointResult point = summarize(log, kOpen, {}, 1);
  EXPECT_DOUBLE_EQ(point.tokens_per_event, 2);
  EXPECT_NEAR(point.output_tokens_per_s.value * point.window_s, 6, 1e-6);
  EXPECT_DOUBLE_EQ(point.tpot_s.median.value, 0.2f);
}

TEST(Metrics, of_nothing_are_nothing) {
  const PointResult point = summarize({}, kOpen, {}, 1);
  EXPECT_EQ(point.num_requests, 0);
  EXPECT_EQ(point.ttft_s.count, 0);
}

TEST(Slo, reads_limits_and_refuses_others) {
  const auto slo = Slo::parse("ttft=1,tpot=0.05");
  ASSERT_TRUE(slo);
  EXPECT_EQ(slo->ttft_s, 1);
  EXPECT_EQ(slo->tpot_s, 0.05);
  EXPECT_FALSE(slo->e2e_s);
  for (const char* text : {"", "ttft", "ttft=", "ttft=0", "ttft=-1", "ttft=1,ttft=2", "x=1",
                           "ttft=1;tpot=2", "ttft=inf"}) {
    EXPECT_FALSE(Slo::parse(text)) << text;
  }
}

}  // namespace
}  // namespace gauntlet::load::inline results
