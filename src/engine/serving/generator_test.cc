// Does one request end when and how it should, and leave no page behind?
#include "engine/serving/generator.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/steps/fake_executor.h"
#include "engine/tiny_tokenizer.h"

namespace gauntlet::engine::inline serving {
namespace {

using Ids = std::vector<std::int32_t>;
using testing::HasSubstr;

constexpr std::int32_t kEos = 4089;

model::ModelConfig small_config() {
  return {.name = "fake", .vocab = 4096, .max_positions = 100, .eos_ids = {kEos}};
}

/// Says a text after a prompt, then ends the sequence.
void say(FakeExecutor& executor, std::size_t prompt_tokens, const std::string& text) {
  executor.next = [prompt_tokens, ids = tiny_tokenizer().encode(text)](const auto& history) {
    const std::size_t made = history.size() - prompt_tokens;
    return made < ids.size() ? ids[made] : kEos;
  };
}

struct GeneratorRun : testing::Test {
  FakeExecutor executor{small_config(), 7};

  Expected<Generation> run(const GenerationRequest& request, const GenerationEvents& events = {}) {
    Generator generator(executor, &tiny_tokenizer());
    auto result = generator.run(request, events);
    EXPECT_EQ(executor.kv().check_integrity(), "");
    return result;
  }
  ~GeneratorRun() override {
    EXPECT_EQ(executor.kv().num_sequences(), 0) << "a sequence was left behind";
  }
};

TEST_F(GeneratorRun, ends_at_the_end_of_sequence_and_keeps_it_out_of_the_text) {
  say(executor, 2, "The quick brown fox");
  const auto result = run({.prompt = {5, 6}});
  ASSERT_TRUE(result);
  EXPECT_EQ(result->text, "The quick brown fox");
  EXPECT_EQ(result->finish, FinishReason::eos);
  EXPECT_EQ(result->output.back(), kEos);
  EXPECT_GT(result->first_token_ms, 0);
  EXPECT_TRUE(result->decode_tokens_per_s);
}

TEST_F(GeneratorRun, goes_on_after_the_end_of_sequence_when_told_to) {
  say(executor, 1, "one");
  const auto result =
      run({.prompt = {5}, .max_tokens = 12, .end_of_sequence = EndOfSequence::ignored});
  EXPECT_EQ(result->output.size(), 12u);
  EXPECT_EQ(result->finish, FinishReason::length);
}

TEST_F(GeneratorRun, feeds_the_prompt_in_chunks_and_then_single_tokens) {
  Ids prompt(16);
  for (int i = 0; i < 16; ++i) prompt[i] = 100 + i;
  std::vector<std::int64_t> done;
  const auto result = run({.prompt = prompt, .max_tokens = 3},
                          {.on_prompt = [&](std::int64_t part, std::int64_t total) {
                            done.push_back(part);
                            EXPECT_EQ(total, 16);
                          }});
  EXPECT_EQ(result->output, (Ids{116, 117, 118}));
  EXPECT_EQ(done, (std::vector<std::int64_t>{7, 14, 16}));
  std::vector<Ids> fed;
  for (const auto& step : executor.steps) fed.push_back(step.items.at(0).tokens);
  EXPECT_EQ(fed, (std::vector<Ids>{{prompt.begin(), prompt.begin() + 7},
                                   {prompt.begin() + 7, prompt.begin() + 14},
                                   {114, 115},
                                   {116},
                                   {117}}));
  EXPECT_EQ(executor.steps[0].items[0].want, Want::nothing);
  EXPECT_EQ(executor.steps[2].items[0].want, Want::token);
}

TEST_F(GeneratorRun, ends_before_a_stop_string_and_streams_no_part_of_it) {
  say(executor, 1, "Dear reader, farewell. And more.");
  std::string streamed;
  const auto result =
      run({.prompt = {5}, .stops = {"well", "zzz"}},
          {.on_token = [&](std::int32_t, std::string_view text) { streamed += text; }});
  EXPECT_EQ(result->text, "Dear reader, fare");
  EXPECT_EQ(streamed, result->text);
  EXPECT_EQ(result->finish, FinishReason::stop);
}

TEST_F(GeneratorRun, streams_all_of_the_text_at_the_end) {
  say(executor, 1, "almost a sto");
  std::string streamed;
  const auto result =
      run({.prompt = {5}, .stops = {"stop"}},
          {.on_token = [&](std::int32_t, std::string_view text) { streamed += text; }});
  EXPECT_EQ(result->finish, FinishReason::eos);
  EXPECT_EQ(streamed, "almost a sto");
  EXPECT_EQ(result->text, streamed);
}

TEST_F(GeneratorRun, ends_at_the_last_position_of_the_model) {
  const auto result = run({.prompt = Ids(98, 3), .max_tokens = 50});
  EXPECT_EQ(result->output.size(), 3u);  // after positions 97, 98 and 99
  EXPECT_EQ(result->finish, FinishReason::length);
}

TEST_F(GeneratorRun, draws_each_token_with_a_step_of_its_own) {
  run({.prompt = {5}, .max_tokens = 4, .sampling = {.seed = 9, .step = 70}});
  for (std::int64_t i = 0; i < 4; ++i) {
    EXPECT_EQ(executor.steps.at(i).items.at(0).sampling.step, i);
    EXPECT_EQ(executor.steps.at(i).items.at(0).sampling.seed, 9u);
  }
}

TEST_F(GeneratorRun, stops_between_steps_when_cancelled) {
  std::atomic<bool> cancel = false;
  executor.before_step = [&] {
    if (executor.steps.size() == 4) cancel = true;
  };
  const auto result = run({.prompt = {5}, .max_tokens = 50}, {.cancel = &cancel});
  EXPECT_EQ(result->finish, FinishReason::cancelled);
  EXPECT_EQ(result->output.size(), 5u);
  const auto nothing = run({.prompt = {5}, .max_tokens = 50}, {.cancel = &cancel});
  EXPECT_EQ(nothing->finish, FinishReason::cancelled);
  EXPECT_TRUE(nothing->output.empty());
}

TEST_F(GeneratorRun, refuses_what_cannot_be_run) {
  const auto refusal = [&](const GenerationRequest& request) {
    const auto result = run(request);
    EXPECT_FALSE(result);
    EXPECT_EQ(result.error().kind, ErrorKind::wrong_use);
    return result.error().message;
  };
  EXPECT_THAT(refusal({}), HasSubstr("no tokens"));
  EXPECT_THAT(refusal({.prompt = {4096}}), HasSubstr("token 4096"));
  EXPECT_THAT(refusal({.prompt = {-1}}), HasSubstr("0 to 4095"));
  EXPECT_THAT(refusal({.prompt = Ids(101, 1)}), HasSubstr("at most 100 fit"));
  EXPECT_THAT(refusal({.prompt = {1}, .max_tokens = 0}), HasSubstr("at least 1 token"));
  EXPECT_THAT(refusal({.prompt = {1}, .stops = {""}}), HasSubstr("stop string is empty"));
  EXPECT_THAT(refusal({.prompt = {1}, .sampling = {.top_p = 0}}), HasSubstr("top-p"));
  EXPECT_TRUE(executor.steps.empty());
  Generator without_text(executor, nullptr);
  EXPECT_THAT(without_text.run({.prompt = {1}, .stops = {"x"}}).error().message,
              HasSubstr("no tokenizer"));
}

TEST_F(GeneratorRun, makes_ids_without_a_tokenizer) {
  Generator generator(executor, nullptr);
  const auto result = generator.run({.prompt = {5}, .max_tokens = 2});
  EXPECT_EQ(result->output, (Ids{6, 7}));
  EXPECT_EQ(result->text, "");
}

TEST_F(GeneratorRun, says_so_when_the_logits_are_no_numbers) {
  executor.next = [](const auto& history) { return history.size() < 3 ? 1 : kNoChoice; };
  const auto result = run({.prompt = {5}});
  ASSERT_FALSE(result);
  EXPECT_THAT(result.error().message, HasSubstr("left no token to choose at position 3"));
}

TEST(GeneratorPages, say_so_when_they_run_out) {
  FakeExecutor executor(small_config(), 8, /*pages=*/5);  // of four positions
  Generator generator(executor, nullptr);
  const auto result = generator.run({.prompt = Ids(12, 3), .max_tokens = 30});
  ASSERT_FALSE(result);
  EXPECT_THAT(result.error().message, HasSubstr("KV cache is full at position 20"));
  EXPECT_EQ(result.error().kind, ErrorKind::environment);
  EXPECT_TRUE(generator.run({.prompt = Ids(12, 3), .max_tokens = 2})) << "pages came back";
  EXPECT_EQ(executor.kv().check_integrity(), "");
}

TEST(GeneratorReuse, computes_only_what_a_longer_prompt_adds_to_whole_pages) {
  FakeExecutor executor(small_config(), 64);  // pages of four positions
  {
    Generator generator(executor, nullptr);
    const auto first = generator.run({.prompt = {1, 2, 3, 4, 5}, .max_tokens = 3});
    EXPECT_EQ(first->reused_tokens, 0);
    executor.steps.clear();
    const auto second = generator.run({.prompt = {1, 2, 3, 4, 5, 50, 51}, .max_tokens = 2});
    EXPECT_EQ(second->reused_tokens, 4);
    EXPECT_EQ(executor.steps.at(0).items.at(0).tokens, (Ids{5, 50, 51}));
    EXPECT_EQ(second->output, (Ids{52, 53}));
    const auto other = generator.run({.prompt = {1, 2, 9, 4, 5, 50, 51, 7}, .max_tokens = 1});
    EXPECT_EQ(other->reused_tokens, 0);
    const auto same = generator.run({.prompt = {1, 2, 9, 4, 5, 50, 51, 7}, .max_tokens = 1});
    EXPECT_EQ(same->reused_tokens, 4) << "its last logits were not kept";
    EXPECT_EQ(same->output, other->output);
    EXPECT_EQ(executor.kv().check_integrity(), "");
  }
  EXPECT_EQ(executor.kv().num_sequences(), 0);
}

}  // namespace
}  // namespace gauntlet::engine::inline serving
