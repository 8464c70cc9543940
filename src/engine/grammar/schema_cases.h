// For tests: which texts a schema's grammar has.
#pragma once
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "engine/grammar/matcher.h"
#include "engine/grammar/schema.h"

namespace gauntlet::engine::grammar {

inline bool matches(const Grammar& grammar, std::string_view text) {
  Matcher matcher(grammar);
  return matcher.advance(text) && matcher.can_end();
}

struct Case {
  std::string schema;
  std::vector<std::string> good;
  std::vector<std::string> bad;
};

inline void expect(const Case& wanted) {
  const auto grammar = compile_schema(wanted.schema);
  ASSERT_TRUE(grammar) << wanted.schema << ": " << grammar.error().message;
  for (const auto& text : wanted.good)
    EXPECT_TRUE(matches(*grammar, text)) << wanted.schema << text;
  for (const auto& text : wanted.bad)
    EXPECT_FALSE(matches(*grammar, text)) << wanted.schema << text;
}

inline std::string error_of(std::string_view schema) {
  const auto grammar = compile_schema(schema);
  return grammar ? "" : grammar.error().message;
}

}  // namespace gauntlet::engine::grammar
