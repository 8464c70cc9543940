// Is a turn that follows its masks one that harmony's parser reads as meant, whatever is drawn?
#include "server/structured/output_form.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <set>

#include "core/random.h"
#include "engine/grammar/schema.h"
#include "engine/tiny_tokenizer.h"
#include "model/harmony_parser.h"
#include "server/structured/grammar_constraints.h"

namespace gauntlet::server::inline structured {
namespace {

using Json = nlohmann::ordered_json;
using Ids = std::vector<std::int32_t>;

const model::Tokenizer& tokenizer() { return engine::tiny_tokenizer(); }
const model::Harmony& harmony() {
  static const auto harmony = *model::Harmony::make(tokenizer());
  return harmony;
}

model::ModelConfig config() {
  model::ModelConfig config;
  config.vocab = tokenizer().vocab_size() + 7;
  config.eos_ids = {harmony().specials().done, harmony().specials().end_of_text};
  return config;
}

OutputConstraint a_call() {
  return {.form = OutputForm::tool_call,
          .functions = {{.name = "f"},
                        {.name = "f_more", .parameters = R"({"properties": {"a": {"enum": [1]}}})"},
                        {.name = "g", .parameters = R"({"required": ["x"], "properties":
                                                        {"x": {"type": "boolean"}}})"}}};
}
OutputConstraint an_answer() {
  return {.form = OutputForm::json_schema,
          .schema = R"({"type": "array", "items": {"enum": ["a", 2]}, "maxItems": 3})"};
}

Ids allowed_ids(const std::vector<std::uint32_t>& mask) {
  Ids ids;
  for (std::int32_t id = 0; id < static_cast<std::int32_t>(mask.size() * 32); ++id) {
    if (mask[id / 32] >> (id % 32) & 1) ids.push_back(id);
  }
  return ids;
}

/// Draws any allowed token until one that ends the turn.
Ids draw(const TokenMask& mask, std::uint64_t seed) {
  const Random random(seed);
  const Ids ends = {harmony().specials().done, harmony().specials().call,
                    harmony().specials().end_of_text};
  Ids output;
  for (std::uint64_t i = 0; i < 500; ++i) {
    const Ids allowed = allowed_ids(mask(output));
    if (allowed.empty()) break;
    output.push_back(allowed[random.below(allowed.size(), i)]);
    if (std::ranges::find(ends, output.back()) != ends.end()) return output;
  }
  ADD_FAILURE() << "the turn never ended: "
                << tokenizer().decode(output, model::SpecialText::shown);
  return output;
}

std::vector<model::ParsedMessage> parse(const Ids& output) {
  model::HarmonyParser parser(harmony());
  for (const std::int32_t id : output) parser.push(id);
  parser.finish();
  return parser.messages();
}

TEST(Turn, is_read_as_the_call_it_was_held_to) {
  const GrammarConstraints constraints(tokenizer(), config());
  std::set<std::string> recipients;
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    const auto messages = parse(draw(*constraints.compile(a_call()), seed));
    ASSERT_EQ(messages.size(), 1u);
    EXPECT_FALSE(messages[0].malformed);
    EXPECT_EQ(messages[0].header.channel, "commentary");
    EXPECT_EQ(messages[0].header.content_type, "<|constrain|>json");
    EXPECT_EQ(messages[0].end, model::MessageEnd::call);
    EXPECT_TRUE(Json::parse(messages[0].content).is_object());
    recipients.insert(messages[0].header.recipient);
  }
  EXPECT_EQ(recipients, (std::set<std::string>{"functions.f", "functions.f_more", "functions.g"}));
}

TEST(Turn, may_begin_with_reasoning_that_is_bounded) {
  const GrammarConstraints constraints(tokenizer(), config());
  OutputConstraint constraint = an_answer();
  constraint.max_reasoning_tokens = 20;
  int num_reasoned = 0;
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    const Ids output = draw(*constraints.compile(constraint), seed);
    const auto messages = parse(output);
    ASSERT_LE(messages.size(), 2u);
    EXPECT_EQ(messages.back().header.channel, "final");
    EXPECT_EQ(messages.back().end, model::MessageEnd::done);
    EXPECT_TRUE(Json::parse(messages.back().content).is_array());
    if (messages.size() == 1) continue;
    ++num_reasoned;
    EXPECT_EQ(messages[0].header.channel, "analysis");
    EXPECT_FALSE(messages[0].malformed);
    const auto ended = std::ranges::find(output, harmony().specials().end);
    EXPECT_LE(ended - output.begin(), 20 + 10);
  }
  EXPECT_GT(num_reasoned, 0);
  EXPECT_LT(num_reasoned, 20);
}

TEST(Turn, of_plain_text_has_no_header_and_any_of_the_models_ends) {
  const GrammarConstraints constraints(tokenizer(), config());
  OutputConstraint constraint = an_answer();
  constraint.frame = OutputFrame::text;
  std::set<std::int32_t> ends;
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    Ids output = draw(*constraints.compile(constraint), seed);
    ends.insert(output.back());
    output.pop_back();
    EXPECT_TRUE(Json::parse(tokenizer().decode(output)).is_array());
  }
  EXPECT_EQ(ends,
            (std::set<std::int32_t>{harmony().specials().done, harmony().specials().end_of_text}));
}

TEST(Turn, has_masks_that_depend_on_the_output_alone) {
  const GrammarConstraints constraints(tokenizer(), config());
  OutputConstraint constraint = an_answer();
  constraint.functions = a_call().functions;
  constraint.max_reasoning_tokens = 5;
  const TokenMask shared = *constraints.compile(constraint);
  std::vector<Ids> outputs;
  for (std::uint64_t seed = 0; seed < 6; ++seed) outputs.push_back(draw(shared, seed));
  for (std::size_t size = 0; size < 60; ++size) {
    for (const Ids& output : outputs) {
      const auto part = std::span(output).first(std::min(size, output.size()));
      EXPECT_EQ(shared(part), (*constraints.compile(constraint))(part));
    }
  }
}

TEST(Turn, takes_a_token_exactly_when_its_mask_allows_it) {
  const auto vocabulary = std::make_shared<const engine::grammar::Vocabulary>(
      static_cast<std::int32_t>(config().vocab),
      [](std::int32_t id) {
        return tokenizer().is_special(id) ? std::string_view() : tokenizer().token_bytes(id);
      },
      Ids{harmony().specials().done, harmony().specials().call});
  const auto body = std::make_shared<const engine::grammar::Masks>(
      std::make_shared<const engine::grammar::Grammar>(
          *engine::grammar::compile_schema(R"({"type": "integer", "maximum": 99, "minimum": 0})")),
      vocabulary);
  const auto text = std::make_shared<const engine::grammar::Mask>(vocabulary->mask_words(), 0xFFu);
  const auto form = std::make_shared<const TurnForm>(
      TurnForm{.ways = {{.header = {1, 2, 3}, .body = body, .ends = {harmony().specials().done}},
                        {.header = {1, 4}, .body = body, .ends = {harmony().specials().call}}},
               .reasoning = TurnForm::Reasoning{
                   .header = {1, 5}, .text = text, .max_tokens = 2, .end = 6, .resume = {7}}});
  for (std::uint64_t seed = 0; seed < 3; ++seed) {
    const Random random(seed);
    TurnCursor cursor(form);
    for (std::uint64_t i = 0; i < 12; ++i) {
      const Ids allowed = allowed_ids(cursor.mask());
      ASSERT_FALSE(allowed.empty());
      for (std::int32_t id = -1; id <= vocabulary->size(); ++id) {
        const bool wanted = std::ranges::find(allowed, id) != allowed.end();
        ASSERT_EQ(TurnCursor(cursor).accept(id), wanted) << id;
      }
      ASSERT_TRUE(cursor.accept(allowed[random.below(allowed.size(), i)]));
    }
  }
}

}  // namespace
}  // namespace gauntlet::server::inline structured
