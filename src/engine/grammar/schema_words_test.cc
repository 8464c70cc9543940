// Are keywords and formats of all drafts held, or named where they cannot be?
#include <gtest/gtest.h>

#include "engine/grammar/schema.h"
#include "engine/grammar/schema_cases.h"

namespace gauntlet::engine::grammar {
namespace {

TEST(Schema, takes_the_words_of_older_drafts_and_of_openapi) {
  expect({R"({"type":"array","uniqueItems":false,"maxItems":1})", {"[]", "[1]"}, {"[1,2]"}});
  expect({R"({"type":"array","items":[{"const":1},{"const":2}],"additionalItems":false})",
          {"[]", "[1]", "[1,2]"},
          {"[2]", "[1,2,3]"}});
  expect({R"({"items":[{"const":1}],"additionalItems":{"const":0}})", {"[1,0,0]"}, {"[1,1]"}});
  expect({R"({"items":[{"const":1}]})", {"[]", "[1,true]"}, {"[2]"}});
  expect({R"({"items":{"const":1},"additionalItems":false})", {"[1,1]"}, {"[2]"}});
  expect({R"({"type":"integer","nullable":true,"maximum":3})", {"3", "null"}, {"4", "true"}});
  expect({R"({"type":"integer","nullable":false})", {"3"}, {"null"}});
  expect({R"({"type":"integer","discriminator":{"propertyName":"x"},"x-anything":[1]})",
          {"3"},
          {"null"}});
  expect(
      {R"({"properties":{"a":{"not":{}},"b":{"const":1}}})", {"{}", R"({"b":1})"}, {R"({"a":1})"}});
}

TEST(Schema, steps_through_integers) {
  for (const int step : {1, 2, 7, 10, 60}) {
    const auto grammar = compile_schema(R"({"type":"number","maximum":150,"multipleOf":)" +
                                        std::to_string(step) + "}");
    ASSERT_TRUE(grammar) << grammar.error().message;
    for (int value = -300; value <= 300; ++value)
      EXPECT_EQ(matches(*grammar, std::to_string(value)), value <= 150 && value % step == 0)
          << value << " by " << step;
    EXPECT_FALSE(matches(*grammar, "0.5"));
  }
}

TEST(Schema, holds_the_names_of_members) {
  expect({R"({"propertyNames":{"enum":["a","bc"]},"additionalProperties":{"const":1}})",
          {"{}", R"({"a":1})", R"({"bc":1,"a":1})"},
          {R"({"b":1})", R"({"a":2})", R"({"":1})"}});
  expect({R"({"type":"object","propertyNames":{"pattern":"^[a-z]+$","maxLength":3}})",
          {"{}", R"({"abc":{}})"},
          {R"({"abcd":1})", R"({"A":1})", R"({"":1})"}});
  expect({R"({"propertyNames":{"pattern":"^a"},"properties":{"ab":{"const":1},"b":{"const":2}},)"
          R"("additionalProperties":{"const":3}})",
          {R"({"ab":1})", R"({"ab":1,"a":3})", R"({"ac":3})"},
          {R"({"b":2})", R"({"ab":3})", R"({"c":3})"}});
  expect({R"({"type":"object","propertyNames":{"type":"string"}})", {R"({"x":1})"}, {"1"}});
  expect({R"({"type":"object","propertyNames":{"type":"integer"}})", {"{}"}, {R"({"1":1})"}});
  EXPECT_FALSE(error_of(R"({"propertyNames":{"maxLength":1},"required":["ab"]})").empty());
}

TEST(Schema, knows_formats) {
  const auto of = [](const char* format) {
    return std::string(R"({"type":"string","format":")") + format + "\"}";
  };
  expect({of("ipv4"),
          {R"("0.0.0.0")", R"("255.10.199.1")"},
          {R"("256.1.1.1")", R"("1.1.1")", R"("01.1.1.1")", R"("1.1.1.1.1")"}});
  expect(
      {of("ipv6"),
       {R"("::")", R"("::1")", R"("1::")", R"("1:2:3:4:5:6:7:8")", R"("fe80::1:2")",
        R"("1:2:3:4:5:6::")", R"("::2:3:4:5:6:7:8")", R"("1::3:4:5:6:7")", R"("::ffff:1.2.3.4")"},
       {R"("")", R"(":")", R"("1")", R"("1:2:3:4:5:6:7")", R"("1:2:3:4:5:6:7:8:9")", R"("1::2::3")",
        R"("12345::")", R"("1:2:3:4:5:6:7::8")", R"(":::")"}});
  expect({of("hostname"),
          {R"("a")", R"("example.com")", R"("a-b.c1.org")"},
          {R"("-a")", R"("a..b")", R"("a_b")", R"("")", R"("a-")"}});
  expect({of("uri"),
          {R"("https://example.com")", R"("http://a.b:80/c/%20d?e=f#g")", R"("wss://x/")"},
          {R"("example.com")", R"("https://")", R"("https://a b")", R"("https://a/%2")"}});
  expect({of("duration"),
          {R"("P1D")", R"("PT5M")", R"("P1Y2M3DT4H5M6S")", R"("P3W")"},
          {R"("P")", R"("PT")", R"("1D")", R"("P1DT")", R"("P1W2D")"}});
  expect({R"({"type":"integer","format":"int32"})",
          {"0", "2147483647", "-2147483648"},
          {"2147483648", "-2147483649", "1.5"}});
  expect({R"({"type":"integer","format":"int64","minimum":0})",
          {"0", "9223372036854775807"},
          {"9223372036854775808", "-1"}});
  expect({R"({"type":"number","format":"double"})", {"1.5", "1e9"}, {"x"}});
  expect({R"({"type":"string","format":"jwt","pattern":"^a$"})", {R"("a")"}, {R"("b")"}});
}

TEST(Schema, notes_what_it_cannot_enforce_where_that_is_allowed) {
  const auto notes = [](const char* schema) {
    const auto compiled = compile_schema(schema, Unenforced::noted);
    EXPECT_TRUE(compiled) << schema << compiled.error().message;
    return compiled ? compiled->unenforced : std::vector<std::string>();
  };
  using List = std::vector<std::string>;
  EXPECT_EQ(notes(R"({"type":"number","multipleOf":0.1})"), List{"multipleOf at /"});
  EXPECT_EQ(notes(R"({"properties":{"a":{"uniqueItems":true,"items":{}}}})"),
            List{"uniqueItems at /properties/a"});
  EXPECT_EQ(notes(R"({"type":"string","pattern":"a\\b"})"), List{"pattern at /"});
  EXPECT_EQ(notes(R"({"type":"string","format":"jwt"})"), List{"format jwt at /"});
  EXPECT_EQ(notes(R"({"type":"string","pattern":"(a|b)*a(a|b){40}$","maxLength":3})"),
            List{"pattern at /"});
  std::string letters = R"({"type":"string","allOf":[{"pattern":"a"})";
  for (char letter = 'b'; letter <= 't'; ++letter)
    letters += std::string(R"(,{"pattern":")") + letter + "\"}";
  EXPECT_EQ(notes((letters + "]}").c_str()), List{"pattern at /"});
  EXPECT_EQ(notes(R"({"oneOf":[{"type":"integer"},{"type":"number"}]})"), List{"oneOf at /"});
  EXPECT_EQ(notes(R"({"enum":[1,5],"minimum":2})"), List{"minimum at /"});
  EXPECT_EQ(notes(R"({"type":"integer","minimum":2})"), List{});
  EXPECT_FALSE(compile_schema(R"({"type":"strin"})", Unenforced::noted));
  EXPECT_FALSE(compile_schema(R"({"$ref":"#/nowhere"})", Unenforced::noted));
}

}  // namespace
}  // namespace gauntlet::engine::grammar
