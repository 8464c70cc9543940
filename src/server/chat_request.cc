#include "server/chat_request.h"

#include <nlohmann/json.hpp>

namespace gauntlet::server {
namespace {

std::optional<model::ReasoningEffort> read_effort(Fields& fields) {
  // OpenAI has a fourth word that this family of models was not trained on.
  const auto word = fields.choice("reasoning_effort", {"low", "medium", "high"});
  if (!word) return std::nullopt;
  if (word == "low") return model::ReasoningEffort::low;
  return word == "high" ? model::ReasoningEffort::high : model::ReasoningEffort::medium;
}

void read_max_tokens(Fields& fields, GenerationParams& params) {
  params.max_tokens = fields.integer("max_completion_tokens", kMaxTokensRange);
  const auto older = fields.integer("max_tokens", kMaxTokensRange);
  if (!older) return;
  if (params.max_tokens && *params.max_tokens != *older) {
    fields.refuse("max_tokens", "and max_completion_tokens say different things; give one");
  }
  params.max_tokens = older;
}

void read_log_probs(Fields& fields, GenerationParams& params) {
  const bool wanted = fields.boolean("logprobs").value_or(false);
  const auto top = fields.integer("top_logprobs", {0, kMaxTopLogProbs});
  if (top && !wanted) fields.refuse("top_logprobs", "needs logprobs set to true");
  if (wanted) params.top_log_probs = static_cast<int>(top.value_or(0));
}

}  // namespace

ApiResult<ChatRequest> parse_chat(const Json& body, const RequestScope& scope) {
  std::optional<ApiError> fault;
  Fields fields(body, "", fault);
  ChatRequest request;
  read_model(fields, scope, fault);
  request.messages = read_messages(fields);
  ToolFields tools = read_tools(fields);
  request.tools = std::move(tools.tools);
  request.effort = read_effort(fields);
  request.constraint = read_response_format(fields);
  if (tools.constraint && request.constraint) {
    fields.refuse("response_format", "cannot be had together with a required tool call");
  }
  if (request.constraint) request.constraint->functions = request.tools;
  if (tools.constraint) request.constraint = std::move(tools.constraint);
  request.params = read_generation_params(fields, scope.vocab);
  read_max_tokens(fields, request.params);
  read_log_probs(fields, request.params);
  read_bystanders(fields);
  fields.refuse_unknown();
  if (fault) return *fault;
  return request;
}

ApiResult<TokenizeRequest> parse_tokenize(const Json& body, const RequestScope& scope) {
  std::optional<ApiError> fault;
  Fields fields(body, "", fault);
  TokenizeRequest request;
  read_model(fields, scope, fault);
  request.add_special_tokens = fields.boolean("add_special_tokens").value_or(true);
  request.return_token_strs = fields.boolean("return_token_strs").value_or(false);
  if (auto text = fields.text("prompt")) {
    request.input = std::move(*text);
    if (fields.find("messages")) fields.refuse("messages", "and prompt cannot be given together");
  } else {
    ChatRequest chat;
    chat.messages = read_messages(fields);
    chat.tools = read_tools(fields).tools;
    chat.effort = read_effort(fields);
    request.input = std::move(chat);
  }
  fields.refuse_unknown();
  if (fault) return *fault;
  return request;
}

}  // namespace gauntlet::server
