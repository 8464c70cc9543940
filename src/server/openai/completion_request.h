// POST /v1/completions, and the two endpoints that only translate text, as typed requests.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "server/openai/generate/choice_decoder.h"
#include "server/openai/generate/generation_params.h"
#include "server/structured/constraint.h"

namespace gauntlet::server::inline openai {

/// What a request is checked against.
struct RequestScope {
  std::string model;       // the name it may give
  std::int64_t vocab = 0;  // ids are below
};

using Prompt = std::variant<std::string, std::vector<std::int32_t>>;

enum class EchoPrompt { no, yes };

struct CompletionRequest {
  std::vector<Prompt> prompts;
  EchoPrompt echo = EchoPrompt::no;                // the prompt's text before the completion's
  ShownPrompt shown_prompt = ShownPrompt::tokens;  // where it is scored
  SpecialText special_tokens = SpecialText::hidden;
  std::optional<OutputConstraint> constraint;  // of the text
  GenerationParams params;
};
ApiResult<CompletionRequest> parse_completion(const Json& body, const RequestScope& scope);

struct DetokenizeRequest {
  std::vector<std::int32_t> tokens;
};
ApiResult<DetokenizeRequest> parse_detokenize(const Json& body, const RequestScope& scope);

/// Refuses a model that is not the one served.
void read_model(Fields& fields, const RequestScope& scope, std::optional<ApiError>& fault);

/// The form that response_format asks for; none for text.
std::optional<OutputConstraint> read_response_format(Fields& fields);

}  // namespace gauntlet::server::inline openai
