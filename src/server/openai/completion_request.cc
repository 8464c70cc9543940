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
  request.params.max_tokens = fields.integer("max_tokens", kMaxTokensRange);
  if (const auto top = fields.integer("logprobs", {0, kMaxTopLogProbs})) {
    request.params.top_log_probs = static_cast<int>(*top);
  }
  if (!fields.boolean("skip_special_tokens").value_or(true)) {
    request.special_tokens = SpecialText::shown;
  }
  if (fields.boolean("echo").value_or(false)) {
    request.echo = EchoPrompt::yes;
    if (request.params.top_log_probs) {
      fields.refuse("echo", "cannot be had with logprobs: those of a prompt are not computed");
    }
  }
  refuse_unsupported(fields, request.params);
  read_bystanders(fields);
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
