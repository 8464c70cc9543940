#include "server/openai/completion_request.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

namespace gauntlet::server::inline openai {
namespace {

constexpr std::size_t kMaxPrompts = 128;
constexpr std::size_t kMaxIds = std::size_t{1} << 18;  // a token's text may have 128 bytes

std::vector<Prompt> read_prompts(Fields& fields, std::int64_t vocab) {
  const Json* value = fields.find("prompt");
  if (!value) {
    fields.refuse("prompt", "is missing");
    return {};
  }
  if (value->is_string()) return {value->get<std::string>()};
  if (value->is_array() && !value->empty() && value->front().is_number()) {
    return {read_token_ids(fields, "prompt", *value, vocab)};
  }
  if (!value->is_array() || value->empty() || value->size() > kMaxPrompts) {
    fields.refuse("prompt", fmt::format("must be a string, a list of token ids, or a list of 1 to "
                                        "{} of those",
                                        kMaxPrompts));
    return {};
  }
  std::vector<Prompt> prompts;
  for (const Json& one : *value) {
    if (one.is_string()) {
      prompts.emplace_back(one.get<std::string>());
    } else if (one.is_array()) {
      prompts.emplace_back(read_token_ids(fields, "prompt", one, vocab));
    } else {
      fields.refuse("prompt", fmt::format("must hold strings or lists of token ids; element {} is "
                                          "neither",
                                          prompts.size()));
      return {};
    }
  }
  return prompts;
}

void refuse_unsupported(Fields& fields, const GenerationParams& params) {
  if (const auto suffix = fields.text("suffix"); suffix && !suffix->empty()) {
    fields.refuse("suffix", "is not supported");
  }
  const auto best_of = fields.integer("best_of", {1, 128});
  if (best_of && *best_of != params.num_choices) {
    fields.refuse("best_of", "is not supported: ask for n choices and choose");
  }
}

/// What is to be shown of the prompt decides whether it is scored, and whether anything else has to
/// be made.
void read_scored_prompt(Fields& fields, CompletionRequest& request) {
  GenerationParams& params = request.params;
  const bool is_echoed = request.echo == EchoPrompt::yes;
  if (params.max_tokens == 0 && !is_echoed && !params.prompt_log_probs) {
    fields.refuse("max_tokens",
                  "may be 0 with echo or prompt_logprobs alone: nothing else is left");
  }
  if (!is_echoed || !params.top_log_probs) return;
  if (params.prompt_log_probs) {
    fields.refuse("prompt_logprobs", "and echo with logprobs are two ways to ask; use one");
  }
  params.prompt_log_probs = params.top_log_probs;
  request.shown_prompt = ShownPrompt::text;
}

}  // namespace

void read_model(Fields& fields, const RequestScope& scope, std::optional<ApiError>& fault) {
  const auto model = fields.text("model");
  if (!model || *model == scope.model) return;
  fields.refuse("model",
                fmt::format("names a model that is not served here; '{}' is", scope.model));
  fault->status = 404;
  fault->code = "model_not_found";
}

ApiResult<CompletionRequest> parse_completion(const Json& body, const RequestScope& scope) {
  std::optional<ApiError> fault;
  Fields fields(body, "", fault);
  CompletionRequest request;
  read_model(fields, scope, fault);
  request.prompts = read_prompts(fields, scope.vocab);
  request.constraint = read_response_format(fields);
  if (request.constraint) request.constraint->frame = OutputFrame::text;
  request.params = read_generation_params(fields, scope.vocab);
  request.params.max_tokens = fields.integer("max_tokens", {0, kMaxTokens});
  if (const auto top = fields.integer("logprobs", {0, kMaxTopLogProbs})) {
    request.params.top_log_probs = static_cast<int>(*top);
  }
  if (!fields.boolean("skip_special_tokens").value_or(true)) {
    request.special_tokens = SpecialText::shown;
  }
  if (fields.boolean("echo").value_or(false)) {
    request.echo = EchoPrompt::yes;
  }
  read_token_extras(fields, request.params);
  read_scored_prompt(fields, request);
  refuse_unsupported(fields, request.params);
  read_bystanders(fields, request.params);
  fields.refuse_unknown();
  if (fault) return *fault;
  return request;
}

ApiResult<DetokenizeRequest> parse_detokenize(const Json& body, const RequestScope& scope) {
  std::optional<ApiError> fault;
  Fields fields(body, "", fault);
  DetokenizeRequest request;
  read_model(fields, scope, fault);
  if (const Json* ids = fields.list("tokens", kMaxIds)) {
    request.tokens = read_token_ids(fields, "tokens", *ids, scope.vocab);
  } else {
    fields.refuse("tokens", "is missing");
  }
  fields.refuse_unknown();
  if (fault) return *fault;
  return request;
}

}  // namespace gauntlet::server::inline openai
