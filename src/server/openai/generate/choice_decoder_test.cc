// What a client is shown of a model's tokens, whatever they are.
#include "server/openai/generate/choice_decoder.h"

#include <gtest/gtest.h>

#include "core/random.h"
#include "engine/tiny_tokenizer.h"
#include "server/openai/generate/fault_of_turn.h"

namespace gauntlet::server::inline openai {
namespace {

using Ids = std::vector<std::int32_t>;

const model::Harmony& harmony() {
  static const model::Harmony made = *model::Harmony::make(engine::tiny_tokenizer());
  return made;
}

Ids encode(const std::string& text) {
  return engine::tiny_tokenizer().encode(text, model::SpecialTokens::as_special);
}

Ids random_ids(Random& random) {
  static const Ids specials = engine::tiny_tokenizer().specials();
  static const Ids words =
      encode("assistant to=functions.f analysis final commentary json {\"a\"\n");
  Ids ids(random.next_below(50));
  for (auto& id : ids) {
    const auto dice = random.next_below(4);
    id = dice == 0   ? specials[random.next_below(specials.size())]
         : dice == 1 ? words[random.next_below(words.size())]
                     : static_cast<std::int32_t>(random.next_below(4000));
  }
  return ids;
}

TEST(ChatDecoder, makes_a_valid_answer_of_any_tokens) {
  Random random(3);
  const std::string headers[] = {
      "", "<|channel|>final<|message|>", "<|channel|>analysis<|message|>",
      "<|channel|>commentary to=functions.f <|constrain|>json<|message|>"};
  for (int round = 0; round < 1500; ++round) {
    Ids ids = encode(headers[random.next_below(4)]);
    const Ids more = random_ids(random);
    ids.insert(ids.end(), more.begin(), more.end());
    const std::vector<std::string> stops = random.next_below(2) == 0
                                               ? std::vector<std::string>{}
                                               : std::vector<std::string>{"e", "al"};
    ASSERT_EQ(fault_of_turn(harmony(), ids, stops), "") << "round " << round;
  }
}

TEST(ChatDecoder, shows_text_without_a_header_token_by_token) {
  const auto decoder = make_chat_decoder(harmony(), {.log_probs = LogProbs::shown});
  for (const std::int32_t id : encode("Once upon a time there was a cat")) {
    const Delta delta = decoder->push({.token = id});
    EXPECT_EQ(delta.content, engine::tiny_tokenizer().decode(Ids{id}));
    EXPECT_EQ(delta.log_probs.size(), 1u);
  }
}

TEST(ChatDecoder, still_waits_for_a_header_that_may_come) {
  const auto decoder = make_chat_decoder(harmony(), {});
  for (const std::int32_t id : encode(" to=functions.f<|channel|>commentary json<|message|>")) {
    EXPECT_EQ(decoder->push({.token = id}).content, "");
  }
  EXPECT_EQ(decoder->num_tool_calls(), 1);
}

TEST(ChatDecoder, shows_a_call_of_what_is_no_name_as_text) {
  const auto decoder = make_chat_decoder(harmony(), {});
  std::string content;
  for (const std::int32_t id :
       encode("<|channel|>commentary to=functions.\"<|message|>hi<|call|>")) {
    content += decoder->push({.token = id}).content;
  }
  EXPECT_EQ(content, "hi");
  EXPECT_EQ(decoder->num_tool_calls(), 0);
}

TEST(TextDecoder, ends_log_probabilities_where_a_stop_string_ends_the_text) {
  const auto decoder = make_text_decoder(engine::tiny_tokenizer(),
                                         {.stops = {" three"}, .log_probs = LogProbs::shown});
  std::string content, spelled;
  for (const std::int32_t id : encode("one two three four")) {
    const Delta delta = decoder->push({.token = id});
    content += delta.content;
    for (const auto& log_prob : delta.log_probs) spelled += log_prob.bytes;
    if (decoder->stopped()) break;
  }
  const Delta rest = decoder->finish();
  EXPECT_TRUE(rest.log_probs.empty());
  EXPECT_EQ(content, "one two");
  EXPECT_EQ(spelled, content);
}

}  // namespace
}  // namespace gauntlet::server::inline openai
