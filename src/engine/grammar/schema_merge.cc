#include "engine/grammar/schema_merge.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

namespace gauntlet::engine::grammar {
namespace {

constexpr int kMaxReferences = 64;

constexpr std::array kAnnotations = {"title",       "description", "default",  "examples",
                                     "$comment",    "$schema",     "$id",      "$defs",
                                     "definitions", "deprecated",  "readOnly", "writeOnly"};

enum class Form { schema, schemas, object_of_schemas, names, count, number, text, any, types };

struct Keyword {
  const char* name;
  Form form;
};

constexpr std::array kKeywords = {Keyword{"$ref", Form::text},
                                  Keyword{"type", Form::types},
                                  Keyword{"enum", Form::any},
                                  Keyword{"const", Form::any},
                                  Keyword{"anyOf", Form::schemas},
                                  Keyword{"oneOf", Form::schemas},
                                  Keyword{"allOf", Form::schemas},
                                  Keyword{"properties", Form::object_of_schemas},
                                  Keyword{"required", Form::names},
                                  Keyword{"additionalProperties", Form::schema},
                                  Keyword{"items", Form::schema},
                                  Keyword{"prefixItems", Form::schemas},
                                  Keyword{"minItems", Form::count},
                                  Keyword{"maxItems", Form::count},
                                  Keyword{"minLength", Form::count},
                                  Keyword{"maxLength", Form::count},
                                  Keyword{"pattern", Form::text},
                                  Keyword{"format", Form::text},
                                  Keyword{"minimum", Form::number},
                                  Keyword{"maximum", Form::number},
                                  Keyword{"exclusiveMinimum", Form::number},
                                  Keyword{"exclusiveMaximum", Form::number}};

constexpr std::array kTypes = {"object", "array", "string", "number", "integer", "boolean", "null"};

bool is_schema(const Schema& value) { return value.is_object() || value.is_boolean(); }

bool all_of(const Schema& list, bool (*holds)(const Schema&)) {
  return std::all_of(list.begin(), list.end(), holds);
}

bool is_type(const Schema& value) {
  return value.is_string() && std::find(kTypes.begin(), kTypes.end(),
                                        value.get_ref<const std::string&>()) != kTypes.end();
}

bool has_form(const Schema& value, const Keyword& keyword) {
  switch (keyword.form) {
    case Form::schema:
      return is_schema(value);
    case Form::schemas:
      return value.is_array() && !value.empty() && all_of(value, is_schema);
    case Form::object_of_schemas:
      return value.is_object() && all_of(value, is_schema);
    case Form::names:
      return value.is_array() && all_of(value, [](const Schema& name) { return name.is_string(); });
    case Form::count:
      return value.is_number_integer() && value >= 0 && value <= 1'000'000'000;
    case Form::number:
      return value.is_number();
    case Form::text:
      // Two patterns, once merged, stand in a list.
      return value.is_string() || (value.is_array() && keyword.name == std::string_view("pattern"));
    case Form::types:
      return is_type(value) || (value.is_array() && !value.empty() && all_of(value, is_type));
    case Form::any:
      return keyword.name == std::string_view("const") || (value.is_array() && !value.empty());
  }
  return false;
}

/// Both schemas of a property, in one flat allOf.
Schema both(const Schema& first, const Schema& second) {
  Schema all = Schema::array();
  for (const Schema* part : {&first, &second}) {
    const bool is_list = part->is_object() && part->size() == 1 && part->contains("allOf");
    const Schema single = is_list ? (*part)["allOf"] : Schema::array({*part});
    for (const Schema& one : single)
      if (one != Schema(true) && std::find(all.begin(), all.end(), one) == all.end())
        all.push_back(one);
  }
  if (all.empty()) return true;
  if (all.size() == 1) return all[0];
  Schema schema = Schema::object();
  schema["allOf"] = std::move(all);
  return schema;
}

/// What a schema asks of the property with this name.
Schema property_of(const Schema& schema, const std::string& name) {
  if (schema.contains("properties") && schema["properties"].contains(name))
    return schema["properties"][name];
  return schema.value("additionalProperties", Schema(true));
}

void merge_properties(Schema& into, const Schema& from) {
  Schema properties = Schema::object();
  for (const Schema* side : {static_cast<const Schema*>(&into), &from}) {
    if (!side->contains("properties")) continue;
    for (const auto& [name, unused] : (*side)["properties"].items())
      if (!properties.contains(name))
        properties[name] = both(property_of(into, name), property_of(from, name));
  }
  const Schema additional = both(into.value("additionalProperties", Schema(true)),
                                 from.value("additionalProperties", Schema(true)));
  const bool said = into.contains("additionalProperties") || from.contains("additionalProperties");
  if (into.contains("properties") || from.contains("properties"))
    into["properties"] = std::move(properties);
  if (said) into["additionalProperties"] = additional;
}

std::vector<std::string> names_in(const Schema& type) {
  if (type.is_string()) return {type.get<std::string>()};
  return type.get<std::vector<std::string>>();
}

Schema common_types(const Schema& first, const Schema& second) {
  const auto has = [](const std::vector<std::string>& list, std::string_view type) {
    return std::find(list.begin(), list.end(), type) != list.end();
  };
  const auto a = names_in(first), b = names_in(second);
  Schema common = Schema::array();
  for (const std::string& type : a) {
    if (has(b, type) || (type == "integer" && has(b, "number")))
      common.push_back(type);
    else if (type == "number" && has(b, "integer"))
      common.push_back("integer");
  }
  return common;
}

void merge_keyword(Schema& into, const std::string& keyword, const Schema& value,
                   const std::string& path) {
  if (!into.contains(keyword)) {
    into[keyword] = value;
    return;
  }
  Schema& mine = into[keyword];
  if (mine == value) return;
  if (keyword == "type") {
    mine = common_types(mine, value);
    if (mine.empty()) refuse(path, "allOf asks for two types that exclude each other");
  } else if (keyword == "required") {
    for (const Schema& name : value)
      if (std::find(mine.begin(), mine.end(), name) == mine.end()) mine.push_back(name);
  } else if (keyword == "pattern") {
    Schema all = mine.is_array() ? mine : Schema::array({mine});
    for (const Schema& one : value.is_array() ? value : Schema::array({value})) all.push_back(one);
    mine = std::move(all);
  } else if (keyword == "items") {
    mine = both(mine, value);
  } else if (keyword == "enum") {
    Schema common = Schema::array();
    for (const Schema& one : mine)
      if (std::find(value.begin(), value.end(), one) != value.end()) common.push_back(one);
    if (common.empty()) refuse(path, "enums merged here have no value in common");
    mine = std::move(common);
  } else if (keyword == "minimum" || keyword == "exclusiveMinimum" || keyword == "minLength" ||
             keyword == "minItems") {
    if (value > mine) mine = value;
  } else if (keyword == "maximum" || keyword == "exclusiveMaximum" || keyword == "maxLength" ||
             keyword == "maxItems") {
    if (value < mine) mine = value;
  } else {
    refuse(path, fmt::format("\"{}\" stands twice with different values in what is merged here, "
                             "which is not supported",
                             keyword));
  }
}

void merge_into(Schema& into, const Schema& from, const std::string& path) {
  const auto only_first_has_prefix = [](const Schema& first, const Schema& second) {
    return first.contains("prefixItems") && !second.contains("prefixItems") &&
           second.contains("items");
  };
  if (only_first_has_prefix(into, from) || only_first_has_prefix(from, into))
    refuse(path, "\"prefixItems\" merged with \"items\" is not supported");
  merge_properties(into, from);
  for (const auto& [keyword, value] : from.items())
    if (!is_annotation(keyword) && keyword != "properties" && keyword != "additionalProperties")
      merge_keyword(into, keyword, value, path);
}

/// The parts of a schema that all hold: itself without $ref and allOf, and what those say.
void collect(const Schema& root, const Schema& schema, const std::string& path,
             std::vector<Schema>& parts, int& budget) {
  if (--budget < 0)
    refuse(path, "\"$ref\" and \"allOf\" go round in a circle or are nested too deeply");
  check_keywords(schema, path);
  if (schema.is_boolean()) {
    if (!schema.get<bool>()) refuse(path, "the schema false inside \"allOf\" admits no value");
    return;
  }
  Schema own = Schema::object();
  for (const auto& [keyword, value] : schema.items())
    if (keyword != "$ref" && keyword != "allOf" && !is_annotation(keyword)) own[keyword] = value;
  if (!own.empty() && std::find(parts.begin(), parts.end(), own) == parts.end())
    parts.push_back(std::move(own));
  if (schema.contains("$ref")) {
    const auto& reference = schema["$ref"].get_ref<const std::string&>();
    collect(root, resolve(root, reference, path), reference, parts, budget);
  }
  if (schema.contains("allOf")) {
    std::size_t index = 0;
    for (const Schema& part : schema["allOf"])
      collect(root, part, fmt::format("{}/allOf/{}", path, index++), parts, budget);
  }
}

const Schema* allowed_values(const Schema& schema, Schema& holder) {
  if (schema.contains("enum")) return &schema["enum"];
  if (!schema.contains("const")) return nullptr;
  holder = Schema::array({schema["const"]});
  return &holder;
}

/// Whatever the order of properties.
bool same_value(const Schema& first, const Schema& second) {
  return nlohmann::json(first) == nlohmann::json(second);
}

bool values_are_disjoint(const Schema& first, const Schema& second) {
  Schema hold_first, hold_second;
  const Schema* const a = allowed_values(first, hold_first);
  const Schema* const b = allowed_values(second, hold_second);
  if (a == nullptr || b == nullptr) return false;
  return std::none_of(a->begin(), a->end(), [&](const Schema& value) {
    return std::any_of(b->begin(), b->end(),
                       [&](const Schema& other) { return same_value(value, other); });
  });
}

bool requires_property(const Schema& schema, const std::string& name) {
  return schema.contains("required") &&
         std::find(schema["required"].begin(), schema["required"].end(), Schema(name)) !=
             schema["required"].end();
}

}  // namespace

void refuse(const std::string& path, const std::string& why) {
  throw Refusal{fmt::format("schema at {}: {}", path, why)};
}

bool is_annotation(const std::string& keyword) {
  return std::find(kAnnotations.begin(), kAnnotations.end(), keyword) != kAnnotations.end();
}

void check_keywords(const Schema& schema, const std::string& path) {
  if (schema.is_boolean()) return;
  if (!schema.is_object()) refuse(path, "a schema is an object, true or false");
  for (const auto& [name, value] : schema.items()) {
    if (is_annotation(name)) continue;
    const auto* const keyword =
        std::find_if(kKeywords.begin(), kKeywords.end(),
                     [&wanted = name](const Keyword& one) { return one.name == wanted; });
    if (keyword == kKeywords.end())
      refuse(path, fmt::format("the keyword \"{}\" is not supported", name));
    if (!has_form(value, *keyword))
      refuse(path, fmt::format("the value of \"{}\" is not of a supported form", name));
  }
}

const Schema& resolve(const Schema& root, const std::string& reference, const std::string& path) {
  if (reference != "#" && !reference.starts_with("#/"))
    refuse(path, fmt::format("\"$ref\" to \"{}\": only places in this schema, \"#/...\", are "
                             "supported",
                             reference));
  try {
    const Schema::json_pointer pointer(reference.substr(1));
    if (root.contains(pointer)) return root.at(pointer);
  } catch (const nlohmann::json::exception&) {
  }
  refuse(path, fmt::format("\"$ref\" to \"{}\" finds nothing there", reference));
}

Schema flattened(const Schema& root, const Schema& schema, const std::string& path) {
  std::vector<Schema> parts;
  int budget = kMaxReferences;
  collect(root, schema, path, parts, budget);
  Schema all = Schema::object();
  for (const Schema& part : parts) merge_into(all, part, path);
  return all;
}

Schema merged(const Schema& root, const Schema& first, const Schema& second,
              const std::string& path) {
  Schema all = flattened(root, first, path);
  merge_into(all, flattened(root, second, path), path);
  return all;
}

std::string type_of(const Schema& value) {
  if (value.is_object()) return "object";
  if (value.is_array()) return "array";
  if (value.is_string()) return "string";
  if (value.is_boolean()) return "boolean";
  if (value.is_null()) return "null";
  if (value.is_number_integer()) return "integer";
  const auto number = value.get<double>();
  return number == static_cast<double>(static_cast<std::int64_t>(std::clamp(number, -9e15, 9e15)))
             ? "integer"
             : "number";
}

std::vector<std::string> types_of(const Schema& schema) {
  std::vector<std::string> types;
  const auto add = [&](const std::string& type) {
    if (std::find(types.begin(), types.end(), type) == types.end()) types.push_back(type);
  };
  if (schema.contains("type")) {
    for (const std::string& type : names_in(schema["type"])) add(type);
    return types;
  }
  Schema holder;
  if (const Schema* values = allowed_values(schema, holder)) {
    for (const Schema& value : *values) add(type_of(value));
    return types;
  }
  const auto says = [&](std::initializer_list<const char*> keywords) {
    return std::any_of(keywords.begin(), keywords.end(),
                       [&](const char* keyword) { return schema.contains(keyword); });
  };
  if (says({"properties", "required", "additionalProperties"})) add("object");
  if (says({"items", "prefixItems", "minItems", "maxItems"})) add("array");
  if (says({"minLength", "maxLength", "pattern", "format"})) add("string");
  if (says({"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"})) add("number");
  if (types.empty()) types = {"object", "array", "string", "number", "boolean", "null"};
  return types;
}

bool are_disjoint(const Schema& root, const Schema& first, const Schema& second,
                  const std::string& path) {
  const Schema a = flattened(root, first, path), b = flattened(root, second, path);
  const bool typed = (a.contains("type") || a.contains("const") || a.contains("enum")) &&
                     (b.contains("type") || b.contains("const") || b.contains("enum"));
  if (typed && common_types(types_of(a), types_of(b)).empty()) return true;
  if (values_are_disjoint(a, b)) return true;
  if (types_of(a) != std::vector<std::string>{"object"} || types_of(a) != types_of(b) || !typed)
    return false;
  if (!a.contains("properties") || !b.contains("properties")) return false;
  for (const auto& [name, schema] : a["properties"].items()) {
    if (!b["properties"].contains(name)) continue;
    if (requires_property(a, name) && requires_property(b, name) &&
        values_are_disjoint(flattened(root, schema, path),
                            flattened(root, b["properties"][name], path)))
      return true;
  }
  return false;
}

}  // namespace gauntlet::engine::grammar
