// Is what bench says of guessing measured over the same tokens, and is an oracle right as often as
// it was asked to be?
#include "engine/measure/guessing.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/steps/fake_runner.h"
#include "engine/steps/pooled_executor.h"

namespace gauntlet::engine::inline measure {
namespace {

std::unique_ptr<PooledExecutor> fake_executor(int* changed_step = nullptr) {
  model::ModelConfig config;
  config.name = "fake";
  config.vocab = 1000;
  config.max_positions = 2000;
  config.sliding_window = 8;
  auto runner = std::make_unique<FakeRunner>(
      config, StepLimits{.tokens = 64, .items = 64, .page_tokens = 4}, 1);
  runner->next = [changed_step](const FakeRunner::History& history) {
    const bool changes = changed_step != nullptr && history.size() == 40 && ++*changed_step >= 2;
    return static_cast<std::int32_t>(mix64(history.back() + 7 * history.size() + changes) % 1000);
  };
  const KvPoolConfig pool{.page_tokens = 4, .window = 8, .full_pages = 4000, .sliding_pages = 4000};
  return std::make_unique<PooledExecutor>(pool, std::move(runner));
}

Guessers oracle_of(double tokens_a_step, std::int64_t guesses) {
  const auto oracle = std::make_shared<OracleDrafter>(acceptance_for(tokens_a_step, guesses), 1000);
  return {.speculation = {.drafter = oracle, .max_drafts = guesses, .lengths = DraftLengths::fixed},
          .oracle = oracle};
}

TEST(Oracle, is_right_so_often_that_a_step_brings_the_tokens_asked_for) {
  EXPECT_NEAR(acceptance_for(1, 7), 0, 1e-9);
  EXPECT_NEAR(acceptance_for(8, 7), 1, 1e-9);
  EXPECT_NEAR(acceptance_for(1.75, 2), 0.5, 1e-9);
  EXPECT_ANY_THROW(acceptance_for(4.1, 3));
  EXPECT_ANY_THROW(acceptance_for(0.9, 3));
}

TEST(GuessMeter, counts_as_many_tokens_a_step_as_an_oracle_was_asked_for) {
  for (const double wanted : {1.0, 1.6, 2.5, 4.0}) {
    const auto executor = fake_executor();
    GuessMeter meter(*executor, oracle_of(wanted, 3), 8);
    const DecodeTest test{.streams = 8, .prompt_tokens = 5, .output_tokens = 401};
    const auto sample = meter.measure(test);
    ASSERT_TRUE(sample) << sample.error().message;
    EXPECT_GT(sample->plain_s, 0);
    EXPECT_GT(sample->guessed_s, 0);
    const auto tokens = static_cast<double>(test.timed_tokens());
    const double steps = tokens - static_cast<double>(sample->guessed.accepted);
    EXPECT_NEAR(tokens / steps, wanted, 0.04 * wanted);
    EXPECT_EQ(executor->kv().num_sequences(), 0);
  }
}

TEST(GuessMeter, refuses_a_run_in_which_guesses_changed_a_token) {
  int seen = 0;
  const auto executor = fake_executor(&seen);
  GuessMeter meter(*executor, oracle_of(2, 3), 1);
  const auto sample = meter.measure({.streams = 1, .prompt_tokens = 5, .output_tokens = 60});
  ASSERT_FALSE(sample);
  EXPECT_EQ(sample.error().kind, ErrorKind::check_failed);
}

TEST(GuessMeter, says_when_who_guesses_has_failed) {
  struct Broken final : Drafter {
    std::string_view name() const override { return "broken"; }
    std::vector<Draft> propose(std::span<const DraftWish>) override {
      throw std::runtime_error("no guess");
    }
  };
  const auto executor = fake_executor();
  GuessMeter meter(
      *executor,
      {.speculation = {.drafter = std::make_shared<Broken>(), .lengths = DraftLengths::fixed}}, 1);
  const auto sample = meter.measure({.streams = 1, .prompt_tokens = 5, .output_tokens = 60});
  ASSERT_FALSE(sample);
  EXPECT_THAT(sample.error().message, testing::HasSubstr("no guess"));
}

}  // namespace
}  // namespace gauntlet::engine::inline measure
