// Does a conversation remember what it should, and nothing else?
#include "engine/serving/chat_session.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/steps/fake_executor.h"
#include "engine/tiny_tokenizer.h"

namespace gauntlet::engine::inline serving {
namespace {

using model::SpecialTokens;
using testing::HasSubstr;
using testing::Not;

struct Chat : testing::Test {
  FakeExecutor executor{{.name = "fake", .vocab = 4096, .max_positions = 4096, .eos_ids = {4089}},
                        512};
  model::Harmony harmony = *model::Harmony::make(tiny_tokenizer());
  ChatSession session{executor, harmony, {.max_tokens = 200, .max_context = 600}};
  std::size_t answer_begins = 0;
  std::vector<std::int32_t> prompt;
  std::vector<std::pair<std::string, std::string>> shown;  // channel, text
  std::atomic<bool> cancel = false;

  ChatEvents events() {
    return {.on_text =
                [this](const std::string& channel, std::string_view text) {
                  if (shown.empty() || shown.back().first != channel)
                    shown.push_back({channel, ""});
                  shown.back().second += text;
                },
            .cancel = &cancel};
  }

  /// The model's next answer, specials spelled out.
  void will_say(const std::string& text) {
    answer_begins = 0;
    executor.next = [this, ids = tiny_tokenizer().encode(text, SpecialTokens::as_special)](
                        const auto& history) {
      if (answer_begins == 0) {
        answer_begins = history.size();
        prompt = history;
      }
      return ids.at(history.size() - answer_begins);
    };
    executor.steps.clear();
    shown.clear();
  }

  /// What stood before the last answer, whoever computed it.
  std::string prompt_text() const { return tiny_tokenizer().decode(prompt); }
  /// The part of it that was computed for the last answer.
  std::string fed_text() const {
    std::string text;
    for (const auto& step : executor.steps) {
      if (step.items[0].tokens.size() > 1) text += tiny_tokenizer().decode(step.items[0].tokens);
    }
    return text;
  }
};

TEST_F(Chat, shows_channels_apart_and_remembers_only_what_was_final) {
  will_say(
      "<|channel|>analysis<|message|>Think first.<|end|><|start|>assistant<|channel|>final"
      "<|message|>Blue.<|return|>");
  const auto answer = session.say("Which colour?", events());
  ASSERT_TRUE(answer);
  EXPECT_EQ(shown, (std::vector<std::pair<std::string, std::string>>{{"analysis", "Think first."},
                                                                     {"final", "Blue."}}));
  EXPECT_EQ(answer->messages.size(), 2u);
  EXPECT_EQ(answer->generation.finish, FinishReason::eos);
  EXPECT_THAT(prompt_text(), HasSubstr("<|start|>user<|message|>Which colour?<|end|>"));

  will_say("<|channel|>final<|message|>Yes.<|return|>");
  const auto second = session.say("Sure?", events());
  ASSERT_TRUE(second);
  EXPECT_GT(second->generation.reused_tokens, 0);
  EXPECT_THAT(prompt_text(), HasSubstr("Blue."));
  EXPECT_THAT(prompt_text(), HasSubstr("Sure?"));
  EXPECT_THAT(prompt_text(), Not(HasSubstr("Think first.")));
  EXPECT_THAT(fed_text(), Not(HasSubstr("Which colour?"))) << "the first prompt was kept";
}

TEST_F(Chat, forgets_everything_when_reset) {
  will_say("<|channel|>final<|message|>Blue.<|return|>");
  ASSERT_TRUE(session.say("Which colour?", events()));
  session.reset();
  will_say("<|channel|>final<|message|>What?<|return|>");
  ASSERT_TRUE(session.say("Sure?", events()));
  EXPECT_THAT(prompt_text(), Not(HasSubstr("colour")));
}

TEST_F(Chat, keeps_an_answer_that_was_stopped_as_far_as_it_came) {
  will_say("<|channel|>final<|message|>One two three four five six seven.<|return|>");
  executor.before_step = [this] {
    if (executor.steps.size() == 8) cancel = true;
  };
  const auto answer = session.say("Count.", events());
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->generation.finish, FinishReason::cancelled);
  const std::string part = shown.at(0).second;
  EXPECT_THAT(part, HasSubstr("One"));
  EXPECT_THAT(part, Not(HasSubstr("seven")));
  cancel = false;
  executor.before_step = [] {};
  will_say("<|channel|>final<|message|>Sorry.<|return|>");
  ASSERT_TRUE(session.say("Go on.", events()));
  EXPECT_THAT(prompt_text(), HasSubstr(part));
}

TEST_F(Chat, shows_text_of_a_model_that_knows_no_harmony) {
  will_say("It was a dark night.\nAnd so on.<|return|>");
  ASSERT_TRUE(session.say("Begin.", events()));
  ASSERT_EQ(shown.size(), 1u);
  EXPECT_EQ(shown[0].first, "");
  EXPECT_EQ(shown[0].second, "It was a dark night.\nAnd so on.");
}

TEST_F(Chat, says_so_when_the_conversation_is_full_and_stays_as_it_was) {
  std::string long_text;
  for (int i = 0; i < 600; ++i) long_text += "word ";
  const auto refused = session.say(long_text, events());
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message, HasSubstr("room for 600"));
  will_say("<|channel|>final<|message|>Hello.<|return|>");
  ASSERT_TRUE(session.say("Hi.", events()));
  EXPECT_THAT(prompt_text(), Not(HasSubstr("word")));
}

}  // namespace
}  // namespace gauntlet::engine::inline serving
