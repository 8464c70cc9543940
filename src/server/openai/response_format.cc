// response_format, which chats and completions share, and vLLM's other names for it.
#include <nlohmann/json.hpp>

#include "server/openai/chat_request.h"

namespace gauntlet::server::inline openai {
namespace {

/// A schema, as an object or as its text.
std::optional<OutputConstraint> read_schema(Fields& fields, const std::string& name) {
  const Json* schema = fields.find(name);
  if (!schema) return std::nullopt;
  if (!schema->is_object() && !schema->is_string()) {
    fields.refuse(name, "must be a JSON schema");
    return std::nullopt;
  }
  return OutputConstraint{
      .form = OutputForm::json_schema,
      .schema = schema->is_string() ? schema->get<std::string>() : schema->dump()};
}

void refuse_regex(Fields& fields, const std::string& name) {
  if (!fields.find(name)) return;
  fields.refuse(name, "is not supported: ask for a JSON schema whose string has a pattern");
}

std::optional<OutputConstraint> read_structured_outputs(Fields& fields) {
  const Json* object = fields.object("structured_outputs");
  if (!object) return std::nullopt;
  Fields inner = fields.within(*object, "structured_outputs");
  auto constraint = read_schema(inner, "json");
  if (inner.boolean("json_object").value_or(false)) {
    if (constraint) inner.refuse("json_object", "and json cannot be given together");
    constraint = OutputConstraint{.form = OutputForm::json_object};
  }
  refuse_regex(inner, "regex");
  inner.refuse_unknown();
  return constraint;
}

std::optional<OutputConstraint> read_openai_format(Fields& fields) {
  const Json* format = fields.object("response_format");
  if (!format) return std::nullopt;
  Fields inner = fields.within(*format, "response_format");
  const auto type = inner.choice("type", {"text", "json_object", "json_schema"});
  if (!type) inner.refuse("type", "is missing");
  std::optional<OutputConstraint> constraint;
  if (type == "json_object") constraint = {.form = OutputForm::json_object};
  const Json* wrapper = inner.object("json_schema");
  if (type == "json_schema" && !wrapper) inner.refuse("json_schema", "is missing");
  if (type != "json_schema" && wrapper) inner.refuse("json_schema", "is for the type json_schema");
  inner.refuse_unknown();
  if (!wrapper) return constraint;

  Fields named = inner.within(*wrapper, "json_schema");
  const auto name = named.text("name");
  if (!name || !is_plain_name(*name)) {
    named.refuse("name", "must have 1 to 64 letters, digits, dashes and underscores");
  }
  named.text("description");
  named.boolean("strict");
  const Json* schema = named.object("schema");
  if (!schema) named.refuse("schema", "is missing");
  named.refuse_unknown();
  if (!schema) return std::nullopt;
  return OutputConstraint{.form = OutputForm::json_schema, .schema = schema->dump()};
}

}  // namespace

std::optional<OutputConstraint> read_response_format(Fields& fields) {
  auto constraint = read_openai_format(fields);
  const auto also = [&](const char* name, std::optional<OutputConstraint> other) {
    if (constraint && other) fields.refuse(name, "cannot be had together with another form");
    if (other) constraint = std::move(other);
  };
  also("guided_json", read_schema(fields, "guided_json"));
  also("structured_outputs", read_structured_outputs(fields));
  refuse_regex(fields, "guided_regex");
  return constraint;
}

}  // namespace gauntlet::server::inline openai
