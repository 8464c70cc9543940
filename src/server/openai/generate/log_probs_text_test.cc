#include "server/openai/generate/log_probs_text.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "server/openai/fields.h"

namespace gauntlet::server::inline openai {
namespace {

const std::vector<ShownLogProb> kShown = {
    {.bytes = "\xC3\xA9\"", .log_probability = -0.5f, .top = {{"a", -0.5f}, {"b\n", -1.25f}}},
    // Two different bytes that are not text look alike once written: the likelier is kept.
    {.bytes = "\xFF", .log_probability = -2, .top = {{"\xFF", -2.f}, {"\xFE", -3.f}}}};

Json parsed(LogProbsText text) {
  TextBlocks json = text.take_json();
  return Json::parse(json.take(json.size()));
}

TEST(LogProbsText, lists_what_a_completion_shows) {
  LogProbsText text(LogProbsForm::completion, 7);
  text.add({kShown[0]});
  text.add({kShown[1]});
  const Json json = parsed(text);
  EXPECT_EQ(json["tokens"][0], "\xC3\xA9\"");
  EXPECT_EQ(json["token_logprobs"], Json::parse("[-0.5, -2.0]"));
  EXPECT_EQ(json["top_logprobs"][0]["b\n"], -1.25);
  ASSERT_EQ(json["top_logprobs"][1].size(), 1u);
  EXPECT_EQ(json["top_logprobs"][1].begin().value(), -2.0);
  EXPECT_EQ(json["text_offset"], Json::parse("[7, 9]"));
  EXPECT_EQ(text.offset(), 10);
}

TEST(LogProbsText, lists_what_a_chat_shows) {
  LogProbsText text(LogProbsForm::chat);
  text.add(kShown);
  const Json json = parsed(text);
  EXPECT_EQ(json["refusal"], nullptr);
  const Json& first = json["content"][0];
  EXPECT_EQ(first["bytes"], Json::parse("[195, 169, 34]"));
  EXPECT_EQ(first["logprob"], -0.5);
  EXPECT_EQ(first["top_logprobs"][1]["token"], "b\n");
  EXPECT_EQ(first["top_logprobs"][1]["bytes"], Json::parse("[98, 10]"));
  EXPECT_EQ(json["content"][1]["top_logprobs"].size(), 2u);
  EXPECT_EQ(parsed(LogProbsText(LogProbsForm::chat))["content"].size(), 0u);
}

TEST(PromptLogProbsText, lists_tokens_by_id_and_says_the_ranks_it_knows) {
  PromptLogProbsText text;
  text.add({{.token = 3, .shown = {.bytes = "a"}}});
  text.add({{.token = 4,
             .shown = {.bytes = "b", .log_probability = -0.5f, .top = {{"b", -0.5f}, {"c", -1.f}}},
             .top_tokens = {4, 5}},
            {.token = 6, .shown = {.bytes = "d", .log_probability = -9.f}}});
  TextBlocks blocks = text.take_json();
  const Json json = Json::parse(blocks.take(blocks.size()));
  ASSERT_EQ(json.size(), 3u);
  EXPECT_EQ(json[0], nullptr);
  EXPECT_EQ(json[1].size(), 2u);
  EXPECT_EQ(json[1]["4"], Json::parse(R"({"logprob": -0.5, "rank": 1, "decoded_token": "b"})"));
  EXPECT_EQ(json[1]["5"]["rank"], 2);
  EXPECT_EQ(json[2],
            Json::parse(R"({"6": {"logprob": -9.0, "rank": null, "decoded_token": "d"}})"));
}

}  // namespace
}  // namespace gauntlet::server::inline openai
