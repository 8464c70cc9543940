#include "server/openai/responses_request.h"

#include <algorithm>
#include <nlohmann/json.hpp>

namespace gauntlet::server::inline openai {
namespace {

constexpr std::size_t kMaxItems = 4096;
constexpr std::size_t kMaxIncludes = 16;
constexpr std::size_t kMaxMetadata = 16;

std::vector<ChatMessage> read_input(Fields& fields, const FindItem& find_item) {
  const Json* input = fields.find("input");
  if (!input) {
    fields.refuse("input", "is missing");
    return {};
  }
  if (input->is_string())
    return {{.role = model::Role::user, .content = input->get<std::string>()}};
  const Json* items = fields.list("input", kMaxItems);
  if (!items) return {};
  if (items->empty()) fields.refuse("input", "must hold at least one item");
  return read_items(fields, "input", *items, find_item);
}

std::optional<model::ReasoningEffort> read_reasoning(Fields& fields) {
  const Json* reasoning = fields.object("reasoning");
  if (!reasoning) return std::nullopt;
  Fields inner = fields.within(*reasoning, "reasoning");
  const auto effort = read_effort(inner, "effort");
  // The reasoning itself is shown, so there is nothing to summarize.
  inner.choice("summary", {"auto", "concise", "detailed", "none"});
  inner.choice("generate_summary", {"auto", "concise", "detailed"});
  inner.refuse_unknown();
  return effort;
}

std::optional<OutputConstraint> read_format(Fields fields) {
  const auto type = fields.choice("type", {"text", "json_object", "json_schema"});
  if (!type) fields.refuse("type", "is missing");
  std::optional<OutputConstraint> constraint;
  if (type == "json_object") constraint = OutputConstraint{.form = OutputForm::json_object};
  if (type == "json_schema") {
    const auto name = fields.text("name");
    if (!name || !is_plain_name(*name)) fields.refuse("name", kPlainName);
    fields.text("description");
    fields.boolean("strict");
    const Json* schema = fields.object("schema");
    if (!schema) fields.refuse("schema", "is missing");
    if (schema) {
      constraint = OutputConstraint{.form = OutputForm::json_schema, .schema = schema->dump()};
    }
  }
  fields.refuse_unknown();
  return constraint;
}

std::optional<OutputConstraint> read_text_config(Fields& fields) {
  const Json* text = fields.object("text");
  if (!text) return std::nullopt;
  Fields inner = fields.within(*text, "text");
  inner.choice("verbosity", {"low", "medium", "high"});
  std::optional<OutputConstraint> constraint;
  if (const Json* format = inner.object("format")) {
    constraint = read_format(inner.within(*format, "format"));
  }
  inner.refuse_unknown();
  return constraint;
}

void read_include(Fields& fields, GenerationParams& params) {
  const auto top = fields.integer("top_logprobs", {0, kMaxTopLogProbs});
  bool wanted = false;
  if (const Json* include = fields.list("include", kMaxIncludes)) {
    for (const Json& one : *include) {
      if (!one.is_string()) return fields.refuse("include", "must hold strings");
      wanted = wanted || one == "message.output_text.logprobs";
    }
  }
  if (top && *top > 0 && !wanted) {
    return fields.refuse("top_logprobs", "needs message.output_text.logprobs in include");
  }
  if (wanted) params.top_log_probs = static_cast<int>(top.value_or(0));
}

/// What one process with one model and no tools of its own cannot do.
void refuse_unserved(Fields& fields) {
  if (fields.boolean("background").value_or(false)) {
    fields.refuse("background", "is not supported: read the response as it is made");
  }
  if (fields.find("conversation")) {
    fields.refuse("conversation", "is not supported: use previous_response_id, or send the items");
  }
  if (fields.find("prompt")) {
    fields.refuse("prompt", "is not supported: this server keeps no prompts");
  }
  if (fields.text("truncation").value_or("disabled") != "disabled") {
    fields.refuse("truncation", "must be disabled: this server drops nothing of an input");
  }
  fields.integer("max_tool_calls", {1, 1 << 20});  // of tools that run on the server: none
}

/// What an answer repeats of its request, with what holds where nothing was said.
Json echo_of(const Json& body, const GenerationParams& params) {
  const auto given = [&](const char* name, Json otherwise) {
    const auto found = body.find(name);
    return found == body.end() || found->is_null() ? otherwise : *found;
  };
  return {{"background", false},
          {"instructions", given("instructions", nullptr)},
          {"max_output_tokens", given("max_output_tokens", nullptr)},
          {"max_tool_calls", given("max_tool_calls", nullptr)},
          {"metadata", given("metadata", Json::object())},
          {"parallel_tool_calls", given("parallel_tool_calls", true)},
          {"previous_response_id", given("previous_response_id", nullptr)},
          {"prompt_cache_key", given("prompt_cache_key", nullptr)},
          {"reasoning", given("reasoning", {{"effort", nullptr}, {"summary", nullptr}})},
          {"safety_identifier", given("safety_identifier", nullptr)},
          {"service_tier", "default"},
          {"store", given("store", true)},
          {"temperature", given("temperature", 1.0)},
          {"text", given("text", {{"format", {{"type", "text"}}}})},
          {"tool_choice", given("tool_choice", "auto")},
          {"tools", given("tools", Json::array())},
          {"top_logprobs", params.top_log_probs.value_or(0)},
          {"top_p", given("top_p", 1.0)},
          {"truncation", "disabled"},
          {"user", given("user", nullptr)}};
}

}  // namespace

ApiResult<ResponsesRequest> parse_responses(const Json& body, const RequestScope& scope,
                                            const FindItem& find_item) {
  std::optional<ApiError> fault;
  Fields fields(body, "", fault);
  ResponsesRequest request;
  ChatRequest& chat = request.chat;
  read_model(fields, scope, fault);
  request.previous_id = fields.text("previous_response_id").value_or("");
  chat.messages = read_input(fields, find_item);
  request.instructions = fields.text("instructions");
  ToolFields tools = read_tools(fields, ToolShape::flat);
  chat.tools = std::move(tools.tools);
  chat.effort = read_reasoning(fields);
  chat.constraint = read_text_config(fields);
  if (tools.constraint && chat.constraint) {
    fields.refuse("text", "cannot ask for a form together with a required tool call");
  }
  if (chat.constraint) chat.constraint->functions = chat.tools;
  if (tools.constraint) chat.constraint = std::move(tools.constraint);
  chat.params = read_generation_params(fields, scope.vocab);
  if (chat.params.num_choices != 1) fields.refuse("n", "must be 1: a response has one answer");
  chat.params.max_tokens = fields.integer("max_output_tokens", kMaxTokensRange);
  read_include(fields, chat.params);
  refuse_unserved(fields);
  if (fields.boolean("store") == false) request.keep = KeepResponse::no;
  if (const Json* metadata = fields.object("metadata");
      metadata && metadata->size() > kMaxMetadata) {
    fields.refuse("metadata", "must have at most 16 fields");
  }
  read_bystanders(fields);
  fields.refuse_unknown();
  if (fault) return *fault;
  request.echo = dump(echo_of(body, chat.params));
  return request;
}

}  // namespace gauntlet::server::inline openai
