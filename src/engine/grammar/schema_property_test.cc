// Does whatever a grammar lets through satisfy its schema? Judged by a validator of its own.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <regex>
#include <string>

#include "core/random.h"
#include "engine/grammar/matcher.h"
#include "engine/grammar/schema.h"

namespace gauntlet::engine::grammar {
namespace {

using Json = nlohmann::json;

std::size_t num_characters(const std::string& text) {
  return static_cast<std::size_t>(
      std::count_if(text.begin(), text.end(), [](char byte) { return (byte & 0xC0) != 0x80; }));
}

bool has_type(const Json& value, const std::string& type) {
  if (type == "integer")
    return value.is_number() && value.get<double>() == std::floor(value.get<double>());
  if (type == "number") return value.is_number();
  return type == value.type_name();
}

struct Validator {
  const Json& root;

  bool valid(const Json& schema, const Json& value) const {
    if (schema.is_boolean()) return schema.get<bool>();
    for (const auto& [keyword, said] : schema.items())
      if (!holds(schema, keyword, said, value)) return false;
    return true;
  }

  bool any_type(const Json& types, const Json& value) const {
    if (types.is_string()) return has_type(value, types.get<std::string>());
    return std::any_of(types.begin(), types.end(),
                       [&](const Json& type) { return has_type(value, type.get<std::string>()); });
  }

  auto num_valid(const Json& schemas, const Json& value) const {
    return std::count_if(schemas.begin(), schemas.end(),
                         [&](const Json& schema) { return valid(schema, value); });
  }

  bool holds(const Json& schema, const std::string& keyword, const Json& said,
             const Json& value) const {
    if (keyword == "type")
      return any_type(said, value) || (schema.value("nullable", false) && value.is_null());
    if (keyword == "enum") return std::find(said.begin(), said.end(), value) != said.end();
    if (keyword == "const") return value == said;
    if (keyword == "anyOf") return num_valid(said, value) >= 1;
    if (keyword == "oneOf") return num_valid(said, value) == 1;
    if (keyword == "allOf")
      return num_valid(said, value) == static_cast<std::ptrdiff_t>(said.size());
    if (keyword == "$ref")
      return valid(root.at(Json::json_pointer(said.get<std::string>().substr(1))), value);
    if (value.is_object()) return holds_object(schema, keyword, said, value);
    if (value.is_array()) return holds_array(schema, keyword, said, value);
    if (value.is_string()) {
      const auto text = value.get<std::string>();
      if (keyword == "minLength") return num_characters(text) >= said.get<std::size_t>();
      if (keyword == "maxLength") return num_characters(text) <= said.get<std::size_t>();
      if (keyword == "pattern") return std::regex_search(text, std::regex(said.get<std::string>()));
    }
    if (value.is_number()) {
      const double number = value.get<double>();
      if (keyword == "minimum") return number >= said.get<double>();
      if (keyword == "maximum") return number <= said.get<double>();
      if (keyword == "exclusiveMinimum") return number > said.get<double>();
      if (keyword == "exclusiveMaximum") return number < said.get<double>();
    }
    return true;
  }

  bool holds_object(const Json& schema, const std::string& keyword, const Json& said,
                    const Json& value) const {
    if (keyword == "required")
      return std::all_of(said.begin(), said.end(),
                         [&](const Json& name) { return value.contains(name.get<std::string>()); });
    const Json named = schema.value("properties", Json::object());
    for (const auto& [name, member] : value.items()) {
      if (keyword == "properties" && said.contains(name) && !valid(said[name], member))
        return false;
      if (keyword == "propertyNames" && !valid(said, Json(name))) return false;
      if (keyword == "additionalProperties" && !named.contains(name) && !valid(said, member))
        return false;
    }
    return true;
  }

  bool holds_array(const Json& schema, const std::string& keyword, const Json& said,
                   const Json& value) const {
    if (keyword == "minItems") return value.size() >= said.get<std::size_t>();
    if (keyword == "maxItems") return value.size() <= said.get<std::size_t>();
    const bool is_tuple = schema.contains("items") && schema["items"].is_array();
    const Json prefix = is_tuple ? schema["items"] : schema.value("prefixItems", Json::array());
    const std::size_t num_prefix = prefix.size();
    const char* const of_prefix = is_tuple ? "items" : "prefixItems";
    const char* const of_rest = is_tuple ? "additionalItems" : "items";
    for (std::size_t i = 0; i < value.size(); ++i) {
      if (keyword == of_prefix && i < num_prefix && !valid(prefix[i], value[i])) return false;
      if (keyword == of_rest && i >= num_prefix && !valid(said, value[i])) return false;
    }
    return true;
  }
};

/// Random schemas of limited depth; some refuse to compile, which is fine.
class SchemaSource {
 public:
  explicit SchemaSource(std::uint64_t seed) : random_(seed) {}

  Json make(int depth) {
    const auto kind = pick(depth > 0 ? 12 : 6);
    Json schema = Json::object();
    switch (kind) {
      case 0:
        schema["type"] = "string";
        if (pick(2)) schema["minLength"] = pick(3);
        if (pick(2)) schema["maxLength"] = pick(3) ? 2 + pick(4) : 50 + pick(50);
        if (pick(4) == 0) schema["nullable"] = pick(2) == 0;
        if (pick(3) == 0) schema["pattern"] = pick(2) ? "^[a-c]+$" : "x?[0-9]{2}";
        return schema;
      case 1:
        schema["type"] = pick(2) ? "integer" : "number";
        if (pick(2)) schema[pick(2) ? "minimum" : "exclusiveMinimum"] = number();
        if (pick(2)) schema[pick(2) ? "maximum" : "exclusiveMaximum"] = number();
        return schema;
      case 2:
        schema["enum"] = {"a", 1, nullptr, true, Json::array({1, "b"})};
        return schema;
      case 3:
        schema["type"] = {"boolean", "null", "integer"};
        return schema;
      case 4:
        schema["const"] = pick(2) ? Json("c\"") : Json({{"k", 1}});
        return schema;
      case 5:
        return pick(3) ? Json{{"$ref", "#/$defs/leaf"}} : Json(true);
      case 6:
        schema[pick(3) ? "anyOf" : "oneOf"] = {make(depth - 1), make(depth - 1)};
        return schema;
      case 7:
        schema["allOf"] = {object(depth), object(depth)};
        return schema;
      case 8:
        schema["type"] = "array";
        if (pick(4) == 0) {
          schema["items"] = Json::array({make(depth - 1), make(depth - 1)});
          if (pick(2)) schema["additionalItems"] = pick(2) ? make(depth - 1) : Json(false);
        } else {
          if (pick(2)) schema["prefixItems"] = {make(depth - 1), make(depth - 1)};
          schema["items"] = pick(4) ? make(depth - 1) : Json(false);
        }
        schema["uniqueItems"] = false;
        if (pick(2)) schema["minItems"] = pick(3);
        if (pick(2)) schema["maxItems"] = 2 + pick(3);
        return schema;
      default:
        return object(depth);
    }
  }

 private:
  int pick(std::uint64_t bound) { return static_cast<int>(random_.next_below(bound)); }
  double number() { return (pick(400) - 200) / (pick(2) ? 1.0 : 8.0); }

  Json names() {
    switch (pick(4)) {
      case 0:
        return {{"pattern", "^[a-c]"}};
      case 1:
        return {{"maxLength", 1 + pick(3)}, {"minLength", 1}};
      case 2:
        return {{"enum", {"a", "ab", "z"}}};
      default:
        return {{"type", "string"}};
    }
  }

  Json object(int depth) {
    Json schema{{"type", "object"}, {"properties", Json::object()}, {"required", Json::array()}};
    for (const char* name : {"a", "b", "ab", "c\n"}) {
      if (pick(2)) schema["properties"][name] = make(depth - 1);
      if (pick(4) == 0) schema["required"].push_back(name);
    }
    if (pick(4) == 0) schema["propertyNames"] = names();
    if (pick(2)) schema["additionalProperties"] = pick(2) ? make(depth - 1) : Json(pick(2) == 0);
    return schema;
  }

  Random random_;
};

/// A text of the grammar, byte by byte; bytes that close are preferred once it is long.
std::string random_text(const Grammar& grammar, std::uint64_t seed) {
  Random random(seed);
  Matcher matcher(grammar);
  std::string text;
  while (text.size() < 4000) {
    std::string bytes;
    for (int byte = 0; byte < 256; ++byte)
      if (Matcher(matcher).advance(static_cast<std::uint8_t>(byte)))
        bytes += static_cast<char>(byte);
    if (matcher.can_end() && (bytes.empty() || random.next_below(4) == 0)) return text;
    EXPECT_FALSE(bytes.empty()) << "a dead end after " << text;
    if (bytes.empty()) return "";
    char next = bytes[random.next_below(bytes.size())];
    const std::size_t closing = bytes.find_first_of("\"}]");
    if (closing != std::string::npos && random.next_below(150) < text.size()) next = bytes[closing];
    EXPECT_TRUE(matcher.advance(static_cast<std::uint8_t>(next)));
    text += next;
  }
  return "";
}

TEST(Schema, lets_through_only_what_satisfies_it) {
  int compiled = 0, judged = 0;
  for (std::uint64_t seed = 0; seed < 1000; ++seed) {
    Json schema = SchemaSource(seed).make(3);
    if (!schema.is_object()) continue;
    schema["$defs"] = {{"leaf", {{"type", "string"}, {"maxLength", 2}}}};
    const auto grammar = compile_schema(schema.dump());
    if (!grammar) {
      EXPECT_EQ(grammar.error().kind, ErrorKind::wrong_use);
      continue;
    }
    ++compiled;
    for (std::uint64_t draw = 0; draw < 4; ++draw) {
      const std::string text = random_text(*grammar, seed * 100 + draw);
      if (text.empty()) continue;
      const Json value = Json::parse(text, nullptr, false);
      ASSERT_FALSE(value.is_discarded()) << text;
      EXPECT_TRUE(Validator{schema}.valid(schema, value)) << schema.dump() << "\n" << text;
      ++judged;
    }
  }
  EXPECT_GT(compiled, 400);
  EXPECT_GT(judged, 1200);
}

}  // namespace
}  // namespace gauntlet::engine::grammar
