#include "server/openai/chat_request.h"

#include <nlohmann/json.hpp>

namespace gauntlet::server::inline openai {
namespace {

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

std::optional<model::ReasoningEffort> read_effort(Fields& fields, const std::string& name) {
  const auto word = fields.choice(name, {"none", "minimal", "low", "medium", "high", "xhigh"});
  if (!word) return std::nullopt;
  if (word == "medium") return model::ReasoningEffort::medium;
  return word == "high" || word == "xhigh" ? model::ReasoningEffort::high
                                           : model::ReasoningEffort::low;
}

namespace {

/// reasoning_effort, or where vLLM's clients put it for the template.
std::optional<model::ReasoningEffort> read_chat_effort(Fields& fields) {
  const auto effort = read_effort(fields, "reasoning_effort");
  const Json* kwargs = fields.object("chat_template_kwargs");
  if (!kwargs) return effort;
  Fields inner = fields.within(*kwargs, "chat_template_kwargs");
  const auto other = read_effort(inner, "reasoning_effort");
  inner.refuse_unknown();
  return effort ? effort : other;
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
  request.effort = read_chat_effort(fields);
  request.constraint = read_response_format(fields);
  if (tools.constraint && request.constraint) {
    fields.refuse("response_format", "cannot be had together with a required tool call");
  }
  if (request.constraint) request.constraint->functions = request.tools;
  if (tools.constraint) request.constraint = std::move(tools.constraint);
  request.params = read_generation_params(fields, scope.vocab);
  read_max_tokens(fields, request.params);
  read_log_probs(fields, request.params);
  if (!fields.boolean("skip_special_tokens").value_or(true)) {
    fields.refuse("skip_special_tokens",
                  "must be true: a chat's special tokens are what its parts are made of");
  }
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
    request.text = std::move(*text);
    if (fields.find("messages")) fields.refuse("messages", "and prompt cannot be given together");
  } else {
    ChatRequest& chat = request.chat;
    chat.messages = read_messages(fields);
    chat.tools = read_tools(fields).tools;
    chat.effort = read_chat_effort(fields);
  }
  fields.refuse_unknown();
  if (fault) return *fault;
  return request;
}

}  // namespace gauntlet::server::inline openai
