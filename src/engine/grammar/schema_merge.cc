#include "engine/grammar/schema_merge.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

#include "engine/grammar/formats.h"

namespace gauntlet::engine::grammar {
namespace {

constexpr int kMaxReferences = 64;

constexpr std::array kAnnotations = {
    "title",           "description",      "default",      "examples",
    "$comment",        "$schema",          "$id",          "$defs",
    "definitions",     "deprecated",       "readOnly",     "writeOnly",
    "example",         "discriminator",    "xml",          "externalDocs",
    "contentEncoding", "contentMediaType", "contentSchema"};

enum class Form {
  schema,
  schemas,
  schema_or_list,
  object_of_schemas,
  names,
  count,
  number,
  text,
  any,
  types,
  boolean
};

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
                                  Keyword{"items", Form::schema_or_list},
                                  Keyword{"additionalItems", Form::schema},
                                  Keyword{"uniqueItems", Form::boolean},
                                  Keyword{"nullable", Form::boolean},
                                  Keyword{"propertyNames", Form::schema},
                                  Keyword{"not", Form::schema},
                                  Keyword{"prefixItems", Form::schemas},
                                  Keyword{"minItems", Form::count},
                                  Keyword{"maxItems", Form::count},
                                  Keyword{"minLength", Form::count},
                                  Keyword{"maxLength", Form::count},
                                  Keyword{"pattern", Form::text},
                                  Keyword{"format", Form::text},
                                  Keyword{"minimum", Form::number},
                                  Keyword{"maximum", Form::number},
                                  Keyword{"multipleOf", Form::number},
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
    case Form::schema_or_list:
      return is_schema(value) || (value.is_array() && all_of(value, is_schema));
    case Form::boolean:
      return value.is_boolean();
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

bool is_known(const std::string& keyword) {
  return std::any_of(kKeywords.begin(), kKeywords.end(),
                     [&](const Keyword& one) { return one.name == keyword; });
}

/// Both schemas of a property, in one flat allOf.
Schema both(Scope& scope, const Schema& first, const Schema& second) {
  scope.work.spend(2 * (weight_of(first) + weight_of(second)));
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

void merge_properties(Scope& scope, Schema& into, const Schema& from) {
  Schema properties = Schema::object();
  for (const Schema* side : {static_cast<const Schema*>(&into), &from}) {
    if (!side->contains("properties")) continue;
    for (const auto& [name, unused] : (*side)["properties"].items()) {
      scope.work.spend(1 + properties.size());  // for each of these looks at all names
      if (!properties.contains(name))
        properties[name] = both(scope, property_of(into, name), property_of(from, name));
    }
  }
  const Schema additional = both(scope, into.value("additionalProperties", Schema(true)),
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

void merge_keyword(Scope& scope, Schema& into, const std::string& keyword, const Schema& value,
                   const std::string& path) {
  if (!into.contains(keyword)) {
    into[keyword] = value;
    return;
  }
  Schema& mine = into[keyword];
  scope.work.spend(weight_of(value));
  if (mine == value) return;
  const auto compare_all = [&] { scope.work.spend(1 + mine.size() * value.size()); };
  if (keyword == "type") {
    mine = common_types(mine, value);
    if (mine.empty()) refuse(path, "allOf asks for two types that exclude each other");
  } else if (keyword == "required") {
    compare_all();
    for (const Schema& name : value)
      if (std::find(mine.begin(), mine.end(), name) == mine.end()) mine.push_back(name);
  } else if (keyword == "pattern") {
    Schema all = mine.is_array() ? mine : Schema::array({mine});
    for (const Schema& one : value.is_array() ? value : Schema::array({value})) all.push_back(one);
    mine = std::move(all);
  } else if (keyword == "items" || keyword == "propertyNames") {
    mine = both(scope, mine, value);
  } else if (keyword == "enum") {
    compare_all();
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
    scope.cannot_enforce(path, keyword,
                         fmt::format("\"{}\" stands twice with different values in what is merged "
                                     "here, which is not supported",
                                     keyword));
  }
}

void merge_into(Scope& scope, Schema& into, const Schema& from, const std::string& path) {
  const auto only_first_has_prefix = [](const Schema& first, const Schema& second) {
    return first.contains("prefixItems") && !second.contains("prefixItems") &&
           second.contains("items");
  };
  if (only_first_has_prefix(into, from) || only_first_has_prefix(from, into))
    refuse(path, "\"prefixItems\" merged with \"items\" is not supported");
  merge_properties(scope, into, from);
  for (const auto& [keyword, value] : from.items())
    if (!is_annotation(keyword) && keyword != "properties" && keyword != "additionalProperties")
      merge_keyword(scope, into, keyword, value, path);
}

/// What a schema itself says, in the words of 2020-12.
Schema own_keywords(Scope& scope, const Schema& schema, const std::string& path) {
  Schema own = Schema::object();
  for (const auto& [keyword, value] : schema.items())
    if (is_known(keyword) && keyword != "$ref" && keyword != "allOf") own[keyword] = value;
  if (own.contains("items") && own["items"].is_array()) {
    own["prefixItems"] = own["items"];
    own["items"] = own.value("additionalItems", Schema(true));
    if (own["prefixItems"].empty()) own.erase("prefixItems");
  }
  own.erase("additionalItems");
  if (own.value("uniqueItems", false))
    scope.cannot_enforce(path, "uniqueItems", "the keyword \"uniqueItems\" is not supported");
  own.erase("uniqueItems");
  if (own.contains("not"))
    scope.cannot_enforce(path, "not", "the keyword \"not\" is not supported");
  own.erase("not");
  if (own.value("nullable", false) && own.contains("type")) {
    auto types = names_in(own["type"]);
    if (std::find(types.begin(), types.end(), "null") == types.end()) types.emplace_back("null");
    own["type"] = types;
  }
  own.erase("nullable");
  return own;
}

/// The parts of a schema that all hold: itself without $ref and allOf, and what those say.
void collect(Scope& scope, const Schema& schema, const std::string& path,
             std::vector<Schema>& parts, int& budget) {
  if (--budget < 0)
    refuse(path, "\"$ref\" and \"allOf\" go round in a circle or are nested too deeply");
  scope.work.spend(3 * weight_of(schema));
  check_keywords(scope, schema, path);
  if (admits_nothing(schema)) refuse(path, "a schema inside \"allOf\" admits no value");
  if (schema.is_boolean()) return;
  Schema own = own_keywords(scope, schema, path);
  if (!own.empty() && std::find(parts.begin(), parts.end(), own) == parts.end())
    parts.push_back(std::move(own));
  if (schema.contains("$ref")) {
    const auto& reference = schema["$ref"].get_ref<const std::string&>();
    collect(scope, resolve(scope, reference, path), reference, parts, budget);
  }
  if (schema.contains("allOf")) {
    std::size_t index = 0;
    for (const Schema& part : schema["allOf"])
      collect(scope, part, fmt::format("{}/allOf/{}", path, index++), parts, budget);
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

bool values_are_disjoint(Scope& scope, const Schema& first, const Schema& second) {
  Schema hold_first, hold_second;
  const Schema* const a = allowed_values(first, hold_first);
  const Schema* const b = allowed_values(second, hold_second);
  if (a == nullptr || b == nullptr) return false;
  scope.work.spend(4 * (weight_of(*a) * b->size() + weight_of(*b) * a->size()));
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

void Scope::cannot_enforce(const std::string& path, const std::string& what,
                           const std::string& why) {
  if (unenforced == Unenforced::refused) refuse(path, why);
  std::string note = fmt::format("{} at {}", what, path.size() > 1 ? path.substr(1) : "/");
  if (std::find(notes.begin(), notes.end(), note) != notes.end()) return;
  work.spend(8 * notes.size());
  notes.push_back(std::move(note));
}

std::size_t weight_of(const Schema& schema) {
  std::size_t weight = 8;
  if (schema.is_string()) return weight + schema.get_ref<const std::string&>().size() / 8;
  if (schema.is_object())
    for (const auto& [name, value] : schema.items())
      weight += 8 + name.size() / 8 + weight_of(value);
  if (schema.is_array())
    for (const Schema& value : schema) weight += weight_of(value);
  return weight;
}

bool is_annotation(const std::string& keyword) {
  return keyword.starts_with("x-") ||
         std::find(kAnnotations.begin(), kAnnotations.end(), keyword) != kAnnotations.end();
}

void check_keywords(Scope& scope, const Schema& schema, const std::string& path) {
  if (schema.is_boolean()) return;
  if (!schema.is_object()) refuse(path, "a schema is an object, true or false");
  for (const auto& [name, value] : schema.items()) {
    scope.work.spend(8 + value.size());
    if (is_annotation(name)) continue;
    const auto* const keyword =
        std::find_if(kKeywords.begin(), kKeywords.end(),
                     [&wanted = name](const Keyword& one) { return one.name == wanted; });
    if (keyword == kKeywords.end())
      scope.cannot_enforce(path, name, fmt::format("the keyword \"{}\" is not supported", name));
    else if (!has_form(value, *keyword))
      refuse(path, fmt::format("the value of \"{}\" is not of a supported form", name));
  }
}

bool admits_nothing(const Schema& schema) {
  if (schema.is_boolean()) return !schema.get<bool>();
  if (!schema.is_object() || !schema.contains("not")) return false;
  return schema["not"] == Schema(true) || schema["not"] == Schema::object();
}

const Schema& resolve(Scope& scope, const std::string& reference, const std::string& path) {
  if (reference != "#" && !reference.starts_with("#/"))
    refuse(path, fmt::format("\"$ref\" to \"{}\": only places in this schema, \"#/...\", are "
                             "supported",
                             reference));
  const Schema* at = &scope.root;
  try {
    Schema::json_pointer rest(reference.substr(1));
    std::vector<std::string> names;
    for (; !rest.empty(); rest.pop_back()) names.push_back(rest.back());
    for (; !names.empty(); names.pop_back()) {
      scope.work.spend(4 + at->size());
      at = &at->at(Schema::json_pointer() / names.back());
    }
    return *at;
  } catch (const nlohmann::json::exception&) {
  }
  refuse(path, fmt::format("\"$ref\" to \"{}\" finds nothing there", reference));
}

Schema flattened(Scope& scope, const Schema& schema, const std::string& path) {
  std::vector<Schema> parts;
  int budget = kMaxReferences;
  collect(scope, schema, path, parts, budget);
  Schema all = Schema::object();
  for (const Schema& part : parts) merge_into(scope, all, part, path);
  return all;
}

Schema merged(Scope& scope, const Schema& first, const Schema& second, const std::string& path) {
  Schema all = flattened(scope, first, path);
  merge_into(scope, all, flattened(scope, second, path), path);
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
  if (says({"properties", "required", "additionalProperties", "propertyNames"})) add("object");
  if (says({"items", "prefixItems", "minItems", "maxItems"})) add("array");
  const auto format = schema.value("format", std::string());
  if (says({"minLength", "maxLength", "pattern"}) ||
      (!format.empty() && !is_number_storage(format)))
    add("string");
  if (says({"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"}) ||
      is_number_storage(format))
    add("number");
  if (types.empty()) types = {"object", "array", "string", "number", "boolean", "null"};
  return types;
}

bool are_disjoint(Scope& scope, const Schema& first, const Schema& second,
                  const std::string& path) {
  const Schema a = flattened(scope, first, path), b = flattened(scope, second, path);
  const bool typed = (a.contains("type") || a.contains("const") || a.contains("enum")) &&
                     (b.contains("type") || b.contains("const") || b.contains("enum"));
  if (typed && common_types(types_of(a), types_of(b)).empty()) return true;
  if (values_are_disjoint(scope, a, b)) return true;
  if (types_of(a) != std::vector<std::string>{"object"} || types_of(a) != types_of(b) || !typed)
    return false;
  if (!a.contains("properties") || !b.contains("properties")) return false;
  for (const auto& [name, schema] : a["properties"].items()) {
    if (!b["properties"].contains(name)) continue;
    if (requires_property(a, name) && requires_property(b, name) &&
        values_are_disjoint(scope, flattened(scope, schema, path),
                            flattened(scope, b["properties"][name], path)))
      return true;
  }
  return false;
}

}  // namespace gauntlet::engine::grammar
