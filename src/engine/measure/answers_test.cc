// Are answers the same whoever guesses, and counted as they were made?
#include "engine/measure/answers.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "engine/speculation/ngram.h"

namespace gauntlet::engine {
namespace {

const std::string kModels = std::string(GAUNTLET_SOURCE_DIR) + "/models/";

struct Answers : testing::Test {
  Answerer model{{.model = kModels + "gauntlet-tiny",
                  .eagle_head = kModels + "gauntlet-tiny-eagle3",
                  .sequences = 2,
                  .positions = 96}};
  std::vector<std::int32_t> prompts;

  Questions questions(float temperature) {
    constexpr std::int64_t kRequests = 2, kPrompt = 24;
    for (std::int64_t i = 0; i < kRequests * kPrompt; ++i) {
      prompts.push_back(model.prompt_token(kPrompt, i, Random(7)));
    }
    return {.prompts = prompts.data(),
            .requests = kRequests,
            .prompt_tokens = kPrompt,
            .new_tokens = 32,
            .temperature = temperature};
  }
  std::vector<std::int32_t> answers(const Questions& asked, std::shared_ptr<Drafter> drafter) {
    std::vector<std::int32_t> made(static_cast<std::size_t>(asked.requests * asked.new_tokens), -1);
    model.answer(asked,
                 {.drafter = std::move(drafter), .max_drafts = 3, .lengths = DraftLengths::fixed},
                 made.data());
    return made;
  }
  std::map<std::string, double> rates() {
    std::map<std::string, double> values;
    for (const AnswerRate& rate : model.rates(3)) values[rate.name] = rate.total() / rate.per();
    return values;
  }
};

TEST_F(Answers, are_those_of_single_steps_whoever_guesses) {
  model.open(1);
  for (const float temperature : {0.0f, 1.0f}) {
    prompts.clear();
    const Questions asked = questions(temperature);
    std::vector<std::int32_t> expected(static_cast<std::size_t>(asked.requests * asked.new_tokens));
    model.answer_step_by_step(asked, expected.data());
    EXPECT_EQ(answers(asked, nullptr), expected) << temperature;
    EXPECT_EQ(answers(asked, std::make_shared<NgramDrafter>()), expected) << temperature;
    EXPECT_EQ(answers(asked, model.model_drafter(kModels + "gauntlet-draft")), expected)
        << temperature;
    EXPECT_EQ(answers(asked, model.eagle_drafter()), expected) << temperature;
    EXPECT_EQ(answers(asked, model.self_drafter(1)), expected) << temperature;
  }
}

TEST_F(Answers, are_counted_by_the_service) {
  model.open(1);
  const Questions asked = questions(0);
  answers(asked, nullptr);
  EXPECT_EQ(model.counts().tokens, 2 * 32);
  EXPECT_EQ(model.counts().steps, 32) << "both requests share each step";
  EXPECT_EQ(model.counts().speculation.steps, 0);
  EXPECT_EQ(rates().at("tokens_per_step"), 2);
  answers(asked, model.eagle_drafter());
  EXPECT_EQ(model.counts().tokens, 4 * 32);
  EXPECT_LT(model.counts().steps, 2 * 32);
  const auto after = rates();
  EXPECT_GT(after.at("accepted_share"), 0.2);
  EXPECT_GE(after.at("accepted_1"), after.at("accepted_2"));
  EXPECT_GE(after.at("accepted_2"), after.at("accepted_3"));
  EXPECT_GT(after.at("accepted_3"), 0);
}

TEST_F(Answers, are_to_prompts_that_stand_in_the_text) {
  questions(0);
  const auto text = model.text();
  for (const std::size_t begin : {0u, 24u}) {
    const auto prompt = std::span(prompts).subspan(begin, 24);
    EXPECT_FALSE(std::ranges::search(text, prompt).empty());
  }
  EXPECT_NE(model.prompt_token(24, 0, Random(7)), model.prompt_token(24, 0, Random(8)));
}

TEST(WritePrompts, gives_any_part_of_them) {
  const auto model = std::make_shared<Answerer>(AnswererConfig{});
  const auto write = write_prompts(model, 5);
  std::vector<std::int32_t> some(7, -1);
  write(some.data(), 3, 10, Random(4));
  for (std::int64_t i = 3; i < 10; ++i) {
    EXPECT_EQ(some[static_cast<std::size_t>(i - 3)], model->prompt_token(5, i, Random(4)));
  }
}

TEST(AnswerFlops, are_of_every_token_but_the_last) {
  const double one = answer_flops({.requests = 1, .prompt_tokens = 1, .new_tokens = 1});
  EXPECT_GT(one, 1e6);
  EXPECT_EQ(answer_flops({.requests = 3, .prompt_tokens = 10, .new_tokens = 5}), 3 * 14 * one);
}

}  // namespace
}  // namespace gauntlet::engine
