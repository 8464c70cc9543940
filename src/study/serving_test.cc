// Are requests planned as promised, all served, and their waits counted from when they were due?
#include "study/serving.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "study/bench/fake_bench.h"

namespace gauntlet::study {
namespace {

using testing::Each;
using testing::Ge;

const RequestMix kMix{.shared_tokens = 16, .own_tokens = {2, 6}, .output_tokens = {2, 5}};

struct Serving : testing::Test {
  FakeBench fake;
  ServingPolicy policy;

  std::vector<PlannedRequest> plan(std::int64_t count, double per_second) const {
    return plan_requests(kMix, count, per_second, fake.bench.text());
  }
  Expected<ServeOutcome> served(const std::vector<PlannedRequest>& requests) {
    return serve(fake.bench, {fake.executor, policy}, requests);
  }
};

TEST_F(Serving, plans_the_same_requests_each_time_half_of_them_alike_at_the_start) {
  const auto requests = plan(20, 0), again = plan(20, 0);
  for (std::size_t i = 0; i < requests.size(); ++i) {
    EXPECT_EQ(requests[i].prompt, again[i].prompt);
    EXPECT_EQ(requests[i].at_s, 0);
    EXPECT_GE(requests[i].max_tokens, 2);
    EXPECT_LE(requests[i].max_tokens, 5);
    if (i % 2 == 1) continue;
    EXPECT_TRUE(std::equal(requests[i].prompt.begin(), requests[i].prompt.begin() + 16,
                           requests[0].prompt.begin()));
    EXPECT_LE(requests[i].prompt.size(), 22u);
  }
}

TEST_F(Serving, spaces_arrivals_as_a_poisson_process_does) {
  const auto requests = plan(2000, 50);
  EXPECT_NEAR(requests.back().at_s, 2000 / 50.0, 4);
  int close = 0;
  for (std::size_t i = 1; i < requests.size(); ++i) {
    const double gap = requests[i].at_s - requests[i - 1].at_s;
    EXPECT_GE(gap, 0);
    close += gap < 1 / 50.0;
  }
  EXPECT_NEAR(close / 2000.0, 1 - std::exp(-1.0), 0.04) << "exponential gaps";
}

TEST_F(Serving, serves_every_request_and_counts_what_came_out) {
  const auto requests = plan(10, 0);
  const auto outcome = served(requests);
  ASSERT_TRUE(outcome) << outcome.error().message;
  std::int64_t tokens = 0;
  for (const auto& request : requests) tokens += request.max_tokens;
  EXPECT_EQ(outcome->output_tokens, tokens);
  EXPECT_EQ(outcome->first_token_ms.size(), 10u);
  EXPECT_EQ(std::ssize(outcome->between_token_ms), tokens - 10);
  EXPECT_GT(outcome->reused_tokens, 0) << "half of the prompts begin alike";
  EXPECT_THAT(outcome->first_token_ms, Each(Ge(0.0)));
}

TEST_F(Serving, reuses_nothing_without_the_prefix_cache) {
  policy.scheduler.prefix_caching = engine::PrefixCaching::off;
  EXPECT_EQ(served(plan(10, 0)).value().reused_tokens, 0);
}

TEST_F(Serving, says_the_same_with_guesses_and_counts_them) {
  const auto plain = served(plan(10, 0)).value();
  EXPECT_FALSE(plain.speculation) << "nobody guesses";
  policy.guesses = Guesses::ngram;
  const auto guessed = served(plan(10, 0)).value();
  EXPECT_EQ(guessed.output_tokens, plain.output_tokens);
  ASSERT_TRUE(guessed.speculation);
  EXPECT_GE(guessed.speculation->drafted, guessed.speculation->accepted);
  ASSERT_TRUE(figures_of(guessed).speculation);
  EXPECT_EQ(figures_of(guessed).speculation->drafted, guessed.speculation->drafted);
}

TEST_F(Serving, stops_when_it_is_cancelled) {
  fake.cancel = true;
  const auto outcome = served(plan(10, 0));
  ASSERT_FALSE(outcome);
  EXPECT_EQ(fake.executor.kv().num_sequences(), 0);
}

TEST_F(Serving, measures_both_sides_in_turns) {
  const ServingPolicy fixed{.scheduler = {.batching = engine::Batching::fixed}};
  const auto fought = serve_duel(fake.bench, {{fake.executor, fixed}, {fake.executor, policy}},
                                 plan(6, 0), {.seconds = 0, .least_blocks = 2});
  ASSERT_TRUE(fought) << fought.error().message;
  for (const auto& metric : fought->metrics) {
    ASSERT_EQ(metric.blocks.size(), 2u) << metric.name;
    for (const stats::Block& block : metric.blocks) {
      ASSERT_EQ(block.ns.size(), 2u);
      for (const auto& halves : block.ns) {
        for (const double ns : halves) EXPECT_GT(ns, 0) << metric.name;
      }
    }
  }
}

TEST_F(Serving, drops_blocks_of_a_hot_gpu) {
  int block = 0;
  fake.sensors = [&] { return std::optional(GpuState{.thermal_slowdown = ++block == 2}); };
  const auto fought = serve_duel(fake.bench, {{fake.executor, policy}, {fake.executor, policy}},
                                 plan(4, 0), {.seconds = 0, .least_blocks = 3});
  ASSERT_TRUE(fought) << fought.error().message;
  for (const auto& metric : fought->metrics) EXPECT_EQ(metric.blocks.size(), 2u) << metric.name;
  ASSERT_TRUE(fought->conditions);
  EXPECT_EQ(fought->conditions->dropped_blocks, 1);
}

TEST(Percentiles, are_values_that_were_seen) {
  EXPECT_EQ(percentile({3, 1, 2}, 0.5), 2);
  EXPECT_EQ(percentile({3, 1, 2}, 1), 3);
  EXPECT_EQ(percentile({}, 0.5), 0);
}

}  // namespace
}  // namespace gauntlet::study
