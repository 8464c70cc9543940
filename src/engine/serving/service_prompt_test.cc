// Does a prompt get the log-probability of each of its tokens, however its steps are cut?
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "engine/serving/recorded_events.h"
#include "engine/serving/service.h"
#include "engine/steps/fake_executor.h"

namespace gauntlet::engine::inline serving {
namespace {

constexpr std::int64_t kVocab = 512;
const float kLikely = static_cast<float>(std::log(2.0 / 3));
const float kUnlikely = static_cast<float>(std::log(1.0 / 3 / (kVocab - 1)));

model::ModelConfig small_config() {
  return {.name = "fake", .vocab = kVocab, .max_positions = 200, .eos_ids = {500}};
}

/// Every third token is not the one that was to be expected.
std::vector<std::int32_t> prompt_of(std::int64_t size, std::int32_t first = 1) {
  std::vector<std::int32_t> prompt = {first};
  while (std::ssize(prompt) < size) {
    prompt.push_back(prompt.back() + (prompt.size() % 3 == 0 ? 2 : 1));
  }
  return prompt;
}

struct Scored {
  RecordedEvents heard;
  std::vector<PromptEvent> prompts;
  RequestEvents events() {
    RequestEvents events = heard.events_to();
    events.on_prompt = [this](PromptEvent event) {
      EXPECT_TRUE(heard.tokens[event.choice].empty()) << "it comes before the first token";
      prompts.push_back(std::move(event));
    };
    return events;
  }
};

void expect_scores(const PromptEvent& event, const std::vector<std::int32_t>& prompt, int num_top) {
  ASSERT_EQ(event.tokens.size(), prompt.size());
  EXPECT_FALSE(event.tokens[0].log_probability);
  EXPECT_TRUE(event.tokens[0].top.empty());
  for (std::size_t i = 0; i < prompt.size(); ++i) {
    const PromptToken& token = event.tokens[i];
    EXPECT_EQ(token.token, prompt[i]);
    if (i == 0) continue;
    const bool is_likely = prompt[i] == prompt[i - 1] + 1;
    ASSERT_TRUE(token.log_probability) << i;
    EXPECT_NEAR(*token.log_probability, is_likely ? kLikely : kUnlikely, 1e-4) << i;
    ASSERT_EQ(std::ssize(token.top), num_top);
    if (num_top > 0) {
      EXPECT_EQ(token.top[0].token, prompt[i - 1] + 1);
    }
  }
}

void drain(Service& service, FakeExecutor& executor) {
  for (int i = 0; i < 5000 && service.step(); ++i) ASSERT_EQ(service.check_integrity(), "");
  EXPECT_FALSE(service.step()) << "it does not come to an end";
  EXPECT_EQ(executor.kv().num_sequences(), 0);
  EXPECT_EQ(service.stats().kv_usage, 0);
}

TEST(ScoredPrompt, is_scored_whatever_a_step_holds_and_whatever_is_cached) {
  for (const std::int64_t step_tokens : {1, 3, 7, 64}) {
    FakeExecutor executor{small_config(), step_tokens};
    Service service{executor, {}};
    for (const int size : {1, 2, 8, 21}) {
      for (const int num_top : {0, 2}) {
        Scored scored;
        const auto prompt = prompt_of(size);
        ASSERT_TRUE(service.submit({.prompt = prompt, .max_tokens = 2, .prompt_log_probs = num_top},
                                   scored.events()));
        drain(service, executor);
        ASSERT_EQ(scored.prompts.size(), 1u);
        expect_scores(scored.prompts[0], prompt, num_top);
        EXPECT_EQ(scored.heard.tokens[0].front(), prompt.back() + 1);
        EXPECT_EQ(scored.heard.ends[0].reused_tokens, 0);
        EXPECT_EQ(scored.heard.ends[0].output_tokens, 2);
      }
    }
  }
}

TEST(ScoredPrompt, needs_no_token_after_it) {
  FakeExecutor executor{small_config(), 8};
  Service service{executor, {}};
  Scored scored;
  RecordedEvents unscored;
  const auto prompt = prompt_of(19);
  ASSERT_TRUE(
      service.submit({.prompt = prompt, .max_tokens = 0, .num_choices = 3, .prompt_log_probs = 0},
                     scored.events()));
  ASSERT_TRUE(service.submit({.prompt = prompt, .max_tokens = 0}, unscored.events_to()));
  drain(service, executor);
  ASSERT_EQ(scored.prompts.size(), 3u);
  for (const PromptEvent& event : scored.prompts) expect_scores(event, prompt, 0);
  EXPECT_EQ(scored.heard.ends.size(), 3u);
  EXPECT_EQ(scored.heard.reason(), FinishReason::length);
  EXPECT_EQ(unscored.reason(), FinishReason::length);
  EXPECT_TRUE(scored.heard.tokens[0].empty() && unscored.tokens[0].empty());
  EXPECT_EQ(service.stats().output_tokens, 0);
  EXPECT_EQ(service.stats().prompt_tokens, 4 * 19);
}

TEST(ScoredPrompt, is_scored_once_and_whole_when_it_had_to_give_its_pages_back) {
  FakeExecutor executor{small_config(), 4, 12};  // pages of 4 positions
  Service service{executor, {}};
  std::vector<Scored> scored(4);
  for (int i = 0; i < 4; ++i) {
    ASSERT_TRUE(service.submit(
        {.prompt = prompt_of(16, 20 * i + 1), .max_tokens = 12, .prompt_log_probs = i % 2},
        scored[i].events()));
  }
  drain(service, executor);
  EXPECT_GT(service.stats().scheduler.preemptions, 0);
  for (int i = 0; i < 4; ++i) {
    ASSERT_EQ(scored[i].prompts.size(), 1u);
    expect_scores(scored[i].prompts[0], prompt_of(16, 20 * i + 1), i % 2);
    EXPECT_EQ(scored[i].heard.tokens[0].size(), 12u);
  }
}

TEST(ScoredPrompt, with_alternatives_leaves_the_step_to_others) {
  FakeExecutor executor{small_config(), 16};
  Service service{executor, {}};
  Scored scored;
  RecordedEvents other;
  ASSERT_TRUE(service.submit({.prompt = prompt_of(90), .max_tokens = 1, .prompt_log_probs = 1},
                             scored.events()));
  service.step();
  ASSERT_TRUE(service.submit({.prompt = prompt_of(14, 200), .max_tokens = 3}, other.events_to()));
  for (int i = 0; i < 4; ++i) service.step();
  EXPECT_EQ(other.reason(), FinishReason::length) << "it waited for the long prompt";
  EXPECT_TRUE(scored.prompts.empty());
  drain(service, executor);
  expect_scores(scored.prompts.at(0), prompt_of(90), 1);
}

TEST(ScoredPrompt, whose_listener_throws_ends_alone) {
  FakeExecutor executor{small_config(), 16};
  Service service{executor, {}};
  RecordedEvents heard;
  RequestEvents events = heard.events_to();
  events.on_prompt = [](PromptEvent) { throw std::runtime_error("full"); };
  ASSERT_TRUE(service.submit({.prompt = prompt_of(5), .prompt_log_probs = 0}, std::move(events)));
  drain(service, executor);
  EXPECT_EQ(heard.reason(), FinishReason::failed);
  EXPECT_THAT(heard.ends[0].error, testing::HasSubstr("full"));
}

}  // namespace
}  // namespace gauntlet::engine::inline serving
