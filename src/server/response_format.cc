// response_format, which chats and completions share.
#include <nlohmann/json.hpp>

#include "server/chat_request.h"

namespace gauntlet::server {

std::optional<OutputConstraint> read_response_format(Fields& fields) {
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

}  // namespace gauntlet::server
