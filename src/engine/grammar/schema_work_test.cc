// Is what a schema costs bounded, however it is written?
#include <gtest/gtest.h>

#include <ctime>
#include <functional>
#include <string>
#include <vector>

#include "engine/grammar/schema.h"
#include "engine/grammar/schema_cases.h"

namespace gauntlet::engine::grammar {
namespace {

TEST(Schema, is_compiled_or_refused_within_its_work) {
  const auto list = [](int size, const std::function<std::string(int)>& part) {
    std::string all;
    for (int i = 0; i < size; ++i) all += (i == 0 ? "" : ",") + part(i);
    return all;
  };
  const auto number = [](int i) { return std::to_string(i); };
  const auto letters = [&](int size) {
    return R"({"type":"string","allOf":[)" +
           list(size,
                [](int i) {
                  return std::string(R"({"pattern":")") + static_cast<char>('a' + i) + "\"}";
                }) +
           "]}";
  };
  const auto properties = [&](int size) {
    return R"({"additionalProperties":true,"properties":{)" +
           list(size, [](int i) { return "\"p" + std::to_string(i) + "\":{}"; }) + "}}";
  };
  struct Hostile {
    std::string schema;
    bool taken;
  };
  const std::vector<Hostile> all = {
      {letters(10), true},
      {letters(20), false},
      {R"({"type":"array","maxItems":5000})", true},
      {R"({"type":"array","maxItems":1000000000})", false},
      {properties(200), true},
      {properties(10'000), false},
      {R"({"allOf":[{"enum":[)" + list(9000, number) + R"(]},{"enum":[)" + list(9000, number) +
           "]}]}",
       true},
      {R"({"allOf":[{"enum":[)" + list(9000, number) + R"(]},{"enum":[)" +
           list(9000, [](int i) { return std::to_string(i + 8999); }) + "]}]}",
       false},
      {R"({"oneOf":[)" +
           list(60,
                [&](int i) {
                  return R"({"enum":[)" +
                         list(300, [i](int k) { return std::to_string(300 * i + k); }) + "]}";
                }) +
           "]}",
       false}};
  for (const Hostile& one : all) {
    const auto before = std::clock();
    const auto compiled = compile_schema(one.schema, Unenforced::refused);
    const double ms = 1e3 * static_cast<double>(std::clock() - before) / CLOCKS_PER_SEC;
    EXPECT_EQ(static_cast<bool>(compiled), one.taken) << one.schema.substr(0, 80);
    if (!compiled) {
      EXPECT_NE(compiled.error().message.find("too complex"), std::string::npos)
          << compiled.error().message;
    }
    // The work is what is bounded; a sanitizer makes a step several times as long.
    EXPECT_LT(ms, 1000) << one.schema.substr(0, 80);
  }
}

TEST(Schema, counts_thousands_of_characters_without_a_state_for_each) {
  const auto text = [](std::size_t size, const std::string& unit = "a") {
    std::string all = "\"";
    for (std::size_t i = 0; i < size; ++i) all += unit;
    return all + "\"";
  };
  for (const char* unit : {"a", "\xC3\xA9", "\xF0\x9F\x98\x80", "\\n", "\\u0001"})
    expect({R"({"type":"string","minLength":3,"maxLength":5000})",
            {text(3, unit), text(4999, unit), text(5000, unit)},
            {text(2, unit), text(5001, unit)}});
  expect({R"({"type":"string","minLength":2000})", {text(2000), text(9000)}, {text(1999)}});
  expect({R"({"type":"string","pattern":"^(ab|cde)*$","maxLength":4001,"minLength":3999})",
          {text(2000, "ab"), text(1333, "cde")},
          {text(1999, "ab"), text(2001, "ab"), text(1334, "cde")}});
  expect({R"({"type":"string","pattern":"^[a-c]{2,3000}$"})",
          {text(2), text(3000)},
          {text(1), text(3001), text(5, "d")}});
  expect({R"({"type":"string","maxLength":0})", {R"("")"}, {text(1)}});
  const auto compiled =
      compile_schema(R"({"type":"string","maxLength":5000})", Unenforced::refused);
  ASSERT_TRUE(compiled);
  EXPECT_LT(compiled->grammar.num_nodes(), 100u);
  EXPECT_LT(compiled->steps, Work::kMaxSteps / 100);
  // Where no more can be written, an end is all that can follow; where too little can, nothing is.
  EXPECT_FALSE(
      error_of(R"({"type":"string","pattern":"^(aaa)+$","minLength":4,"maxLength":5})").empty());
}

TEST(Schema, survives_hostile_schemas) {
  EXPECT_FALSE(error_of(R"({"$ref":"#"})").empty());
  EXPECT_FALSE(error_of(R"({"anyOf":[{"$ref":"#"},{"type":"null"}]})").empty());
  EXPECT_FALSE(error_of(R"({"$ref":"#","minLength":1})").empty());
  EXPECT_FALSE(
      error_of(R"({"type":"object","properties":{"a":{"$ref":"#"}},"required":["a"]})").empty());
  EXPECT_FALSE(error_of(std::string(100'000, '[')).empty());
  std::string deep;
  for (int i = 0; i < 1000; ++i) deep += R"({"items":)";
  EXPECT_FALSE(error_of(deep + "{}" + std::string(1000, '}')).empty());
  EXPECT_FALSE(error_of(R"({"type":"string","maxLength":1000000000})").empty());
  EXPECT_FALSE(error_of(R"({"type":"array","minItems":1000000000})").empty());
  EXPECT_FALSE(error_of(R"({"type":"string","pattern":"a","minLength":1000000000})").empty());
  EXPECT_FALSE(error_of(R"({"type":"string","pattern":"((a{1000}){1000}){1000}"})").empty());
  EXPECT_FALSE(error_of(R"({"type":"string","pattern":"(a|b)*a(a|b){40}$"})").empty());
  EXPECT_FALSE(error_of(R"({"minimum":1e100000})").empty());
  std::string doubling = R"({"$defs":{)";
  for (int i = 0; i < 60; ++i) {
    const std::string next = std::to_string(i + 1);
    for (const char side : {'a', 'b'})
      doubling += std::string("\"") + side + std::to_string(i) +
                  R"(":{"anyOf":[{"$ref":"#/$defs/a)" + next + R"("},{"$ref":"#/$defs/b)" + next +
                  R"("}]},)";
  }
  doubling += R"("a60":{"type":"null"},"b60":{"type":"boolean"}},"$ref":"#/$defs/a0"})";
  const auto grammar = compile_schema(doubling);
  ASSERT_TRUE(grammar) << grammar.error().message;
  EXPECT_TRUE(matches(*grammar, "null"));
}

}  // namespace
}  // namespace gauntlet::engine::grammar
