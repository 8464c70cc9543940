// Does a grammar take every text its schema describes in the spellings promised, and no other?
#include "engine/grammar/schema.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "engine/grammar/schema_cases.h"

namespace gauntlet::engine::grammar {
namespace {

TEST(Schema, knows_each_type) {
  expect(
      {R"({"type":"string"})",
       {R"("")", R"("a")", R"("\n\u00e9\/")", "\"\xC3\xA9\xF0\x9F\x98\x80\"", R"("\ud83d\ude00")"},
       {"a", R"(")", "\"\n\"", R"("\x")", "\"\xC3\"", "\"\xC0\x80\"", "\"\xED\xA0\x80\"",
        R"("\ud83d")", R"("\ud83dx")", R"("\ude00")", R"("a" )"}});
  expect({R"({"type":"number"})",
          {"0", "-0", "12", "1.50", "1e9", "-1.5E-3"},
          {"01", "1.", ".5", "+1", "1e", "-", "NaN"}});
  expect(
      {R"({"type":"integer"})", {"0", "-12", "123456789012345678901"}, {"1.0", "1e2", "00", ""}});
  expect({R"({"type":"boolean"})", {"true", "false"}, {"True", "tru", "null"}});
  expect({R"({"type":["null","boolean"]})", {"null", "true"}, {"0"}});
  expect({R"({"type":"object"})",
          {"{}", R"({"a":1})", R"({"a": {"b": [1, 2]}, "c":null})", "{\n  \"a\": 1\n}"},
          {"{ }", R"({"a" :1})", R"({"a":1,})", R"({a:1})", R"({"a":  1})", "[]"}});
  expect(
      {R"({"type":"array"})", {"[]", "[1,2]", "[1, [true]]", "[\n  1,\n  2\n]"}, {"[,]", "[1,]"}});
  expect({"{}", {"1", "[]", "\"\""}, {"", "x"}});
  expect({"true", {"1", "{}"}, {}});
}

TEST(Schema, holds_objects_to_their_properties) {
  const char* const kClosed =
      R"({"type":"object","properties":{"a":{"type":"integer"},"b":{"type":"string"},)"
      R"("c":{"type":"null"}},"required":["b"]})";
  expect(
      {kClosed,
       {R"({"b":""})", R"({"a":1,"b":""})", R"({"a":1, "b":"", "c":null})", R"({"b":"","c":null})"},
       {"{}", R"({"a":1})", R"({"b":"","a":1})", R"({"b":"","d":1})", R"({"b":1})",
        R"({,"b":""})"}});
  expect({R"({"properties":{"ab":{"type":"integer"}},"additionalProperties":{"type":"boolean"}})",
          {"{}", R"({"ab":1})", R"({"ab":1,"x":true,"y":false})", R"({"a":true})",
           R"({"abc":true})", R"({"":true})"},
          {R"({"ab":true})", R"({"x":1})", R"({"\u0061b":true})", R"({"x":true,"ab":true})"}});
  expect({R"({"required":["x"],"additionalProperties":{"type":"null"}})",
          {R"({"x":null})", R"({"x":null,"y":null})"},
          {"{}", R"({"y":null})", R"({"x":1})"}});
  expect({R"({"type":"object","additionalProperties":false})", {"{}"}, {R"({"a":1})"}});
  expect(
      {R"({"properties":{"q\"\n":{"const":1}},"required":["q\"\n"]})", {R"({"q\"\n":1})"}, {"{}"}});
}

TEST(Schema, counts_items) {
  expect({R"({"type":"array","items":{"type":"integer"},"minItems":2,"maxItems":3})",
          {"[1,2]", "[1, 2, 3]"},
          {"[]", "[1]", "[1,2,3,4]", "[1,true]"}});
  expect({R"({"prefixItems":[{"const":1},{"const":2}],"items":{"const":0}})",
          {"[]", "[1]", "[1,2]", "[1,2,0,0]"},
          {"[2]", "[1,0]", "[1,2,1]"}});
  expect({R"({"prefixItems":[{"const":1}],"items":false})", {"[]", "[1]"}, {"[1,1]"}});
  expect({R"({"type":"array","maxItems":0})", {"[]"}, {"[1]"}});
  expect({R"({"type":"array","minItems":1})", {"[1]", "[1,2,3]"}, {"[]"}});
}

TEST(Schema, lists_values) {
  expect({R"({"enum":["a",1,null,[1,{"x":"y"}]]})",
          {R"("a")", "1", "null", R"([1,{"x":"y"}])", R"([1, {"x": "y"}])"},
          {R"("b")", "2", "[1]"}});
  expect({R"({"type":"string","enum":["a",1]})", {R"("a")"}, {"1"}});
  expect({R"({"const":{}})", {"{}"}, {"1"}});
}

TEST(Schema, joins_alternatives_and_parts) {
  expect({R"({"anyOf":[{"type":"integer"},{"type":"string","maxLength":1}]})",
          {"1", R"("a")"},
          {R"("ab")", "1.5"}});
  expect({R"({"oneOf":[{"type":"integer"},{"type":"null"}]})", {"1", "null"}, {"true"}});
  const char* const kTagged =
      R"({"oneOf":[{"type":"object","properties":{"t":{"const":"a"},"x":{"type":"integer"}},)"
      R"("required":["t","x"]},{"type":"object","properties":{"t":{"const":"b"}},"required":["t"]}]})";
  expect({kTagged, {R"({"t":"a","x":1})", R"({"t":"b"})"}, {R"({"t":"b","x":1})", R"({"t":"a"})"}});
  expect({R"({"allOf":[{"properties":{"a":{"type":"number"}},"required":["a"]},)"
          R"({"properties":{"a":{"minimum":5},"b":{"type":"null"}}}]})",
          {R"({"a":5})", R"({"a":7.5,"b":null})"},
          {R"({"a":4})", "{}", R"({"a":"x"})"}});
  expect({R"({"type":"object","properties":{"a":{"const":1},"b":{"const":2}},)"
          R"("anyOf":[{"required":["a"]},{"required":["b"]}]})",
          {R"({"a":1})", R"({"b":2})", R"({"a":1,"b":2})"},
          {"{}"}});
  expect({R"({"allOf":[{"pattern":"^a"},{"pattern":"z$"}],"type":"string"})",
          {R"("az")", R"("abcz")"},
          {R"("a")", R"("z")"}});
}

TEST(Schema, follows_references) {
  const char* const kTree =
      R"({"$ref":"#/$defs/n","$defs":{"n":{"type":"object","properties":{"v":{"type":"integer"},)"
      R"("c":{"type":"array","items":{"$ref":"#/$defs/n"}}},"required":["v"]}}})";
  expect({kTree,
          {R"({"v":1})", R"({"v":1,"c":[{"v":2,"c":[]},{"v":3}]})"},
          {R"({"c":[]})", R"({"v":1,"c":[1]})"}});
  expect({R"({"type":"array","items":{"$ref":"#"}})", {"[]", "[[],[[]]]"}, {"[1]"}});
  expect({R"({"properties":{"x":{"allOf":[{"$ref":"#"},{"$ref":"#"}]}}})",
          {R"({"x":{"x":{}}})"},
          {"1"}});
}

TEST(Schema, bounds_strings) {
  expect({R"({"type":"string","minLength":1,"maxLength":2})",
          {R"("a")", "\"\xC3\xA9\xF0\x9F\x98\x80\"", R"("\n\"")"},
          {R"("")", R"("abc")", "\"\xC3\""}});
  expect({R"({"type":"string","pattern":"b+"})", {R"("b")", R"("abba")"}, {R"("a")", R"("")"}});
  expect({R"({"type":"string","pattern":"^[a-c]{2,3}$","minLength":3})",
          {R"("abc")"},
          {R"("ab")", R"("abcd")", R"("abd")"}});
  expect({R"({"type":"string","format":"date"})",
          {R"("2024-02-29")", R"("2000-02-29")", R"("1999-12-31")"},
          {R"("2023-02-29")", R"("1900-02-29")", R"("2024-04-31")", R"("2024-13-01")"}});
  expect({R"({"type":"string","format":"date-time"})",
          {R"("2024-01-31T23:59:59.5+01:00")"},
          {R"("2024-01-31 23:59:59Z")", R"("2024-01-31T24:00:00Z")"}});
  expect({R"({"type":"string","format":"time"})", {R"("12:00:00Z")"}, {R"("12:00:00")"}});
  expect({R"({"type":"string","format":"uuid"})",
          {R"("123e4567-e89b-12d3-a456-426614174000")"},
          {R"("123e4567")"}});
  expect({R"({"type":"string","format":"email"})",
          {R"("a.b@c.de")", R"("x{1}@a-b.org")"},
          {R"("a@b")", R"("a..b@c.de")", R"("@c.de")", R"("a@-b.de")"}});
}

TEST(Schema, bounds_numbers_exactly) {
  const auto all = [](int low, int high) {
    std::string text = R"({"type":"integer","minimum":)";
    return text + std::to_string(low) + R"(,"maximum":)" + std::to_string(high) + "}";
  };
  for (const auto& [low, high] :
       {std::pair{0, 0}, {-5, 5}, {7, 123}, {-120, -9}, {99, 1001}, {-1, 10}}) {
    const auto grammar = compile_schema(all(low, high));
    ASSERT_TRUE(grammar);
    for (int value = -1300; value <= 1300; ++value)
      EXPECT_EQ(matches(*grammar, std::to_string(value)), low <= value && value <= high)
          << value << " in " << low << ".." << high;
  }
  for (const char* bounds :
       {R"("minimum":0.25,"maximum":12.5)", R"("exclusiveMinimum":-1.5,"exclusiveMaximum":1)",
        R"("exclusiveMinimum":0)", R"("maximum":-0.75)",
        R"("minimum":0,"exclusiveMaximum":0.125)"}) {
    const auto grammar = compile_schema(std::string(R"({"type":"number",)") + bounds + "}");
    ASSERT_TRUE(grammar);
    const std::string_view view = bounds;
    for (int eighths = -120; eighths <= 120; ++eighths) {
      const double value = eighths / 8.0;
      bool good = true;
      if (view.starts_with(R"("minimum":0.25)")) good = value >= 0.25 && value <= 12.5;
      if (view.starts_with(R"("exclusiveMinimum":-)")) good = value > -1.5 && value < 1;
      if (view == R"("exclusiveMinimum":0)") good = value > 0;
      if (view.starts_with(R"("maximum)")) good = value <= -0.75;
      if (view.starts_with(R"("minimum":0,)")) good = value >= 0 && value < 0.125;
      std::string text = std::to_string(value);  // six decimals
      for (int cut = 0; cut < 4; ++cut, text.pop_back()) {
        EXPECT_EQ(matches(*grammar, text), good) << text << " " << bounds;
        if (!text.ends_with('0')) break;
      }
      if (eighths % 8 == 0) {
        EXPECT_EQ(matches(*grammar, std::to_string(eighths / 8)), good) << bounds;
      }
    }
  }
  EXPECT_TRUE(matches(*compile_schema(R"({"type":"integer","minimum":18446744073709551615})"),
                      "18446744073709551615"));
  EXPECT_FALSE(matches(*compile_schema(R"({"type":"integer","exclusiveMinimum":9007199254740993})"),
                       "9007199254740993"));
}

TEST(Schema, refuses_what_it_cannot_hold_and_says_where) {
  for (const char* keyword :
       {R"("not":{"type":"null"})", R"("if":{})", R"("patternProperties":{})",
        R"("multipleOf":0.5)", R"("uniqueItems":true)", R"("contains":{})", R"("minProperties":1)",
        R"("dependentRequired":{})", R"("unevaluatedProperties":false)"}) {
    const std::string error =
        error_of(std::string(R"({"type":"object","properties":{"x":{)") + keyword + "}}}");
    const std::string_view name =
        std::string_view(keyword).substr(0, std::string_view(keyword).find(':'));
    EXPECT_NE(error.find(name), std::string::npos) << error;
    EXPECT_NE(error.find("#/properties/x"), std::string::npos) << error;
  }
  EXPECT_NE(error_of(R"({"type":"string","format":"jwt"})").find("jwt"), std::string::npos);
  EXPECT_NE(error_of(R"({"oneOf":[{"type":"integer"},{"type":"number"}]})").find("both match"),
            std::string::npos);
  for (const char* bad : {"",
                          "[]",
                          "1",
                          "{",
                          R"({"type":"strin"})",
                          R"({"type":[]})",
                          R"({"minLength":-1})",
                          R"({"minLength":1.5})",
                          R"({"required":[1]})",
                          R"({"items":[1]})",
                          R"({"nullable":1})",
                          R"({"$ref":"http://x"})",
                          R"({"$ref":"#/nowhere"})",
                          R"({"anyOf":[]})",
                          "false",
                          R"({"enum":[]})",
                          R"({"enum":[1],"minimum":2})",
                          R"({"type":"string","minLength":3,"maxLength":2})",
                          R"({"type":"object","required":["a"],"additionalProperties":false})",
                          R"({"type":"integer","minimum":3,"maximum":2})"})
    EXPECT_FALSE(error_of(bad).empty()) << bad;
}

TEST(JsonObject, nests_as_deep_as_it_likes) {
  const auto grammar = compile_json_object();
  ASSERT_TRUE(grammar);
  std::string text;
  for (int i = 0; i < 20'000; ++i) text += R"({"a":[)";
  text += "1";
  for (int i = 0; i < 20'000; ++i) text += "]}";
  EXPECT_TRUE(matches(*grammar, text));
  text.pop_back();
  EXPECT_FALSE(matches(*grammar, text));
  EXPECT_FALSE(matches(*grammar, "[]"));
  EXPECT_FALSE(matches(*grammar, "1"));
}

TEST(Matcher, leaves_its_state_alone_when_it_refuses) {
  const auto grammar = compile_schema(R"({"enum":["abc","abd"]})");
  Matcher matcher(*grammar);
  ASSERT_TRUE(matcher.advance("\"ab"));
  const auto key = matcher.key();
  EXPECT_FALSE(matcher.advance("c\"x"));
  EXPECT_EQ(matcher.key(), key);
  EXPECT_FALSE(matcher.can_end());
  const Matcher copy = matcher;
  EXPECT_TRUE(matcher.advance("d\""));
  EXPECT_TRUE(matcher.can_end());
  EXPECT_EQ(copy.key(), key);
}

}  // namespace
}  // namespace gauntlet::engine::grammar
