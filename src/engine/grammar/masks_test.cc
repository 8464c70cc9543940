// Is a token allowed exactly when its bytes keep the text on its way, however the text is cut?
#include "engine/grammar/masks.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

#include "core/random.h"
#include "engine/grammar/constraint.h"
#include "engine/grammar/schema.h"

namespace gauntlet::engine::grammar {
namespace {

constexpr std::int32_t kEnd = 3;

/// All single bytes, pieces that cross the borders of JSON, and random ones; a few ids have none.
std::shared_ptr<const Vocabulary> vocabulary() {
  std::vector<std::string> tokens(8);
  for (int byte = 0; byte < 256; ++byte) tokens.emplace_back(1, static_cast<char>(byte));
  for (const char* text :
       {"{\"",       "\":",     "\": ",     "\",",      "\", \"",   "\"}",
        "\"]",       "},",      "}}",       "]]",       "[{\"",     "true",
        "false",     "null",    "tru",      "abc",      "a\":1",    ",\n  ",
        "\n",        "    ",    "123",      "0.5",      "-1",       "\\u",
        "\\\"",      "\\u00e9", "\xC3\xA9", "\xF0\x9F", "\x98\x80", "\xF0\x9F\x98\x80\"",
        "{\"a\":1}", "[]",      "{}",       "abc"})
    tokens.emplace_back(text);
  const Random random(7);
  constexpr std::string_view kLetters = "{}[]\",:\\ \nabtruefn0123.-e";
  for (std::uint64_t i = 0; i < 1500; ++i) {
    std::string token;
    for (std::uint64_t k = 0; k < 2 + random.below(4, i * 16); ++k)
      token += kLetters[random.below(kLetters.size(), i * 16 + k + 1)];
    tokens.push_back(token);
  }
  const auto size = static_cast<std::int32_t>(tokens.size()) + 5;
  return std::make_shared<const Vocabulary>(
      size,
      [&](std::int32_t id) {
        return id < static_cast<std::int32_t>(tokens.size()) ? std::string_view(tokens[id]) : "";
      },
      std::vector{kEnd});
}

constexpr const char* kSchemas[] = {
    "{}",
    R"({"type":"object"})",
    R"({"type":"array","items":{"type":"array","items":{"type":"number"},"maxItems":2}})",
    R"({"type":"object","properties":{"a":{"type":"integer","minimum":-3,"maximum":120},)"
    R"("abc":{"type":"string","maxLength":3},"n":{"$ref":"#"}},"required":["a"]})",
    R"({"properties":{"a":{"enum":["t","true",1]}},"additionalProperties":{"type":"boolean"}})",
    R"({"anyOf":[{"type":"string","pattern":"^(ab|a)+e?$"},{"type":"string","maxLength":2},)"
    R"({"type":"array","items":{"$ref":"#"}},{"type":"number","exclusiveMinimum":0.5}]})",
    R"({"type":"string","minLength":20,"maxLength":60})",
    R"({"type":"string","pattern":"^(ab|true)*$","minLength":9,"maxLength":40})",
    R"({"anyOf":[{"properties":{"a":{"$ref":"#/$defs/x"}},"required":["a"]},)"
    R"({"properties":{"a":{"$ref":"#/$defs/y"},"b":{}},"required":["b"]}],)"
    R"("$defs":{"x":{"items":{"type":"integer"}},"y":{"items":{"type":"number"}}}})"};

std::shared_ptr<const Masks> masks_of(const char* schema,
                                      const std::shared_ptr<const Vocabulary>& tokens) {
  auto grammar = compile_schema(schema);
  check(static_cast<bool>(grammar), "a test's schema compiles");
  return std::make_shared<const Masks>(std::make_shared<const Grammar>(std::move(*grammar)),
                                       tokens);
}

bool has(const Mask& mask, std::int32_t id) { return mask[id / 32] >> (id % 32) & 1; }

TEST(Masks, allow_what_the_matcher_takes_and_never_leave_nothing) {
  const auto tokens = vocabulary();
  for (const char* schema : kSchemas) {
    const auto masks = masks_of(schema, tokens);
    for (std::uint64_t walk = 0; walk < 12; ++walk) {
      const Random random(walk);
      Matcher matcher(masks->grammar());
      for (std::uint64_t i = 0; i < 40; ++i) {
        const Mask mask = *masks->allowed(matcher);
        std::vector<std::int32_t> allowed;
        for (std::int32_t id = 0; id < tokens->size(); ++id) {
          const std::string_view bytes = tokens->bytes(id);
          const bool wanted =
              id == kEnd ? matcher.can_end() : !bytes.empty() && Matcher(matcher).advance(bytes);
          ASSERT_EQ(has(mask, id), wanted) << schema << " token " << bytes;
          if (wanted && id != kEnd) allowed.push_back(id);
        }
        ASSERT_TRUE(!allowed.empty() || matcher.can_end()) << schema;
        if (allowed.empty()) break;
        ASSERT_TRUE(matcher.advance(tokens->bytes(allowed[random.below(allowed.size(), i)])));
      }
    }
  }
}

TEST(Masks, are_kept) {
  const auto masks = masks_of(R"({"type":"array"})", vocabulary());
  Matcher matcher(masks->grammar());
  matcher.advance("[\"ab");
  const auto first = masks->allowed(matcher);
  matcher.advance("cde");
  EXPECT_EQ(masks->allowed(matcher), first);
  EXPECT_EQ(masks->counts().kept, 1);
  EXPECT_EQ(masks->counts().made, 1);
}

TEST(Masks, are_few_for_a_long_string) {
  const auto masks = masks_of(R"({"type":"string","maxLength":5000})", vocabulary());
  Matcher matcher(masks->grammar());
  ASSERT_TRUE(matcher.advance("\"a"));
  for (int i = 0; i < 4000; ++i) {
    masks->allowed(matcher);
    ASSERT_TRUE(matcher.advance("a"));
  }
  EXPECT_EQ(masks->counts().made, 1);
  EXPECT_EQ(masks->counts().nodes_walked, 1);
}

TEST(Masks, of_an_ambiguous_text_are_bounded_and_still_of_the_grammar) {
  // Each of the 100 alternatives can take nearly every token of a vocabulary of 100,000.
  std::vector<std::string> tokens = {"\""};
  const Random random(3);
  for (std::uint64_t i = 0; i < 100'000; ++i) {
    std::string token;
    for (std::uint64_t k = 0; k < 6; ++k)
      token += static_cast<char>('a' + random.below(26, 8 * i + k));
    tokens.push_back(token);
  }
  const auto size = static_cast<std::int32_t>(tokens.size());
  const auto vocabulary = std::make_shared<const Vocabulary>(
      size + 1, [&](std::int32_t id) { return id < size ? std::string_view(tokens[id]) : ""; },
      std::vector{size});
  std::string schema = R"({"anyOf":[)";
  for (int i = 0; i < 100; ++i)
    schema += (i == 0 ? "" : ",") + std::string(R"({"type":"string","maxLength":)") +
              std::to_string(8 + i) + "}";
  const auto masks = masks_of((schema + "]}").c_str(), vocabulary);
  Matcher matcher(masks->grammar());
  ASSERT_TRUE(matcher.advance("\"a"));
  const Mask mask = *masks->allowed(matcher);
  EXPECT_LT(masks->counts().nodes_walked, 50);
  EXPECT_GT(masks->counts().nodes_walked, 1);
  for (std::int32_t id = 0; id < size; ++id) {
    if (has(mask, id)) {
      EXPECT_TRUE(Matcher(matcher).advance(tokens[id]));
    }
  }
  EXPECT_TRUE(has(mask, 0));
}

TEST(Constraint, takes_a_text_wherever_it_is_cut) {
  const auto tokens = vocabulary();
  const auto masks =
      masks_of(R"({"properties":{"a":{"type":"string"}},"additionalProperties":true})", tokens);
  const std::string text = "{\"a\": \"\xC3\xA9\xF0\x9F\x98\x80\\u00e9\", \"b\":[1,{}]}";
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    const Random random(seed);
    Constraint constraint(masks);
    for (std::size_t at = 0, i = 0; at < text.size(); ++i) {
      std::vector<std::int32_t> fitting;
      for (std::int32_t id = 0; id < tokens->size(); ++id)
        if (!tokens->bytes(id).empty() &&
            text.compare(at, tokens->bytes(id).size(), tokens->bytes(id)) == 0)
          fitting.push_back(id);
      for (const std::int32_t id : fitting) EXPECT_TRUE(has(constraint.mask(), id));
      const std::int32_t token = fitting[random.below(fitting.size(), i)];
      EXPECT_FALSE(constraint.accept(kEnd));
      ASSERT_TRUE(constraint.accept(token));
      at += tokens->bytes(token).size();
    }
    EXPECT_TRUE(constraint.can_end());
    EXPECT_TRUE(constraint.accept(kEnd));
    EXPECT_TRUE(constraint.ended());
    EXPECT_FALSE(constraint.accept(8 + 'a'));
    EXPECT_TRUE(has(constraint.mask(), kEnd));
  }
}

TEST(Constraint, is_a_function_of_the_output) {
  const auto masks = masks_of(kSchemas[3], vocabulary());
  const auto ids = [](std::string_view text) {
    std::vector<std::int32_t> all;
    for (const char byte : text) all.push_back(8 + static_cast<unsigned char>(byte));
    return all;
  };
  Constraint stepwise(masks);
  const auto all = ids(R"({"a":1,"n":{"a":2}})");
  for (std::size_t size = 0; size <= all.size(); ++size) {
    const std::span<const std::int32_t> output(all.data(), size);
    EXPECT_EQ(stepwise.mask_after(output), Constraint(masks).mask_after(output));
  }
  EXPECT_EQ(stepwise.mask_after(ids("{")), Constraint(masks).mask_after(ids("{")));
  EXPECT_EQ(stepwise.mask_after(ids("[")), Mask(masks->vocabulary().mask_words(), 0));
  EXPECT_EQ(stepwise.mask_after({}), Constraint(masks).mask());
  EXPECT_FALSE(stepwise.accept(-1));
  EXPECT_FALSE(stepwise.accept(1'000'000));
  EXPECT_FALSE(stepwise.accept(0));
}

TEST(Vocabulary, finds_tokens_by_their_bytes) {
  const std::vector<std::string> tokens = {"ab", "", "a", "ab", "b", "abc"};
  const Vocabulary vocabulary(6, [&](std::int32_t id) { return std::string_view(tokens[id]); },
                              {1});
  std::multiset<std::string> found;
  std::string path;
  for (std::size_t i = 0; i < vocabulary.nodes().size(); ++i) {
    const auto& node = vocabulary.nodes()[i];
    path.resize(node.depth - 1u);
    path += static_cast<char>(node.byte);
    for (const std::int32_t id : vocabulary.tokens_at(i)) {
      EXPECT_EQ(tokens[id], path);
      found.insert(path);
    }
  }
  EXPECT_EQ(found, (std::multiset<std::string>{"a", "ab", "ab", "abc", "b"}));
  EXPECT_EQ(vocabulary.nodes()[0].end, 3u);
}

}  // namespace
}  // namespace gauntlet::engine::grammar
