// The endpoints that make or translate tokens.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <nlohmann/json.hpp>

#include "server/api.h"
#include "server/chat_prompt.h"
#include "server/generation_reply.h"

namespace gauntlet::server {
namespace {

constexpr std::int64_t kDefaultCompletionTokens = 16;  // OpenAI's
/// That are listed at once: a list is many times as large as its text.
constexpr std::size_t kMaxListedTokens = std::size_t{1} << 18;

DecoderOptions decoder_options(const GenerationParams& params, std::uint64_t call_seed) {
  return {.stops = params.stops,
          .stop_ids = params.stop_ids,
          .log_probs = params.top_log_probs ? LogProbs::shown : LogProbs::omitted,
          .call_seed = call_seed};
}

/// What all answers have in common; requests and decoder are the endpoint's.
GenerationPlan plan_for(const ApiConfig& config, AnswerKind kind, std::string id,
                        const GenerationParams& params) {
  return {.head = {.kind = kind,
                   .id = std::move(id),
                   .model = config.model.name,
                   .created_s = unix_now_s(),
                   .log_probs = params.top_log_probs ? LogProbs::shown : LogProbs::omitted,
                   .stream_usage = params.stream_usage},
          .delivery = params.delivery,
          .max_pending = config.max_pending};
}

}  // namespace

Api::Ids Api::encode(const std::string& text) const {
  Ids ids = tokenizer_.encode(text);
  if (config_.model.bos) ids.insert(ids.begin(), *config_.model.bos);
  return ids;
}

ApiResult<Api::Ids> Api::chat_ids(const ChatRequest& request) const {
  if (!harmony_) return ApiError{.message = harmony_.error().message, .param = "messages"};
  return render_chat(request, *harmony_);
}

ApiResult<engine::ServiceRequest> Api::service_request(Ids prompt, const GenerationParams& params,
                                                       const std::string& param) const {
  const std::int64_t capacity = service_.capacity();
  const std::int64_t given = std::ssize(prompt);
  if (given == 0) return ApiError{.message = param + " has no tokens", .param = param};
  const std::int64_t left = capacity - given;
  if (left < 1 || params.max_tokens.value_or(1) > left) {
    return ApiError{
        .message = fmt::format("the prompt has {} tokens and {} more are asked for, but "
                               "this model holds {} in all: shorten one of them",
                               given, params.max_tokens.value_or(1), capacity),
        .param = left < 1 ? param : "max_tokens",
        .code = "context_length_exceeded"};
  }
  return engine::ServiceRequest{.prompt = std::move(prompt),
                                .max_tokens = params.max_tokens.value_or(left),
                                .sampling = params.sampling,
                                .adjustments = params.adjustments,
                                .stop_ids = params.stop_ids,
                                .end_of_sequence = params.end_of_sequence,
                                .num_choices = params.num_choices,
                                .top_log_probs = params.top_log_probs};
}

std::optional<ApiError> Api::constrain(const std::optional<OutputConstraint>& constraint,
                                       engine::ServiceRequest& request) const {
  if (!constraint) return std::nullopt;
  if (!config_.constraints) {
    const char* param =
        constraint->form == OutputForm::tool_call ? "tool_choice" : "response_format";
    return ApiError{
        .message = fmt::format("{} asks for a form that this server cannot enforce", param),
        .param = param};
  }
  auto mask = config_.constraints->compile(*constraint);
  if (!mask) return mask.error();
  request.allowed = std::move(*mask);
  return std::nullopt;
}

std::shared_ptr<Reply> Api::completions(const HttpRequest& request) {
  if (const auto error = check_ready()) return make_reply(*error);
  const auto body = parse_body(request.body);
  if (!body) return make_reply(body.error());
  auto parsed = parse_completion(*body, scope());
  if (!parsed) return make_reply(parsed.error());
  GenerationParams& params = parsed->params;
  const std::uint64_t seed = params.seed.value_or(chance());
  GenerationPlan plan = plan_for(config_, AnswerKind::completion, "cmpl-" + request.id, params);
  for (Prompt& prompt : parsed->prompts) {
    const auto* text = std::get_if<std::string>(&prompt);
    Ids ids = text ? encode(*text) : std::get<Ids>(std::move(prompt));
    const bool is_default = !params.max_tokens;
    auto one = service_request(std::move(ids), params, "prompt");
    if (!one) return make_reply(one.error());
    if (is_default) one->max_tokens = std::min(one->max_tokens, kDefaultCompletionTokens);
    if (const auto error = constrain(parsed->constraint, *one)) return make_reply(*error);
    one->sampling.seed = seed;
    plan.requests.push_back(std::move(*one));
  }
  plan.make_decoder = [&](int) {
    return make_text_decoder(tokenizer_, decoder_options(params, 0));
  };
  auto reply = GenerationReply::start(service_, metrics_, std::move(plan));
  return reply ? *reply : make_reply(reply.error());
}

std::shared_ptr<Reply> Api::chat_completions(const HttpRequest& request) {
  if (const auto error = check_ready()) return make_reply(*error);
  const auto body = parse_body(request.body);
  if (!body) return make_reply(body.error());
  auto parsed = parse_chat(*body, scope());
  if (!parsed) return make_reply(parsed.error());
  const GenerationParams& params = parsed->params;
  auto ids = chat_ids(*parsed);
  if (!ids) return make_reply(ids.error());
  auto one = service_request(std::move(*ids), params, "messages");
  if (!one) return make_reply(one.error());
  one->sampling.seed = params.seed.value_or(chance());
  if (parsed->constraint && parsed->effort) {
    parsed->constraint->max_reasoning_tokens = one->max_tokens / 2;
  }
  if (const auto error = constrain(parsed->constraint, *one)) return make_reply(*error);
  if (params.end_of_sequence == engine::EndOfSequence::ends) {
    one->stop_ids.push_back(harmony_->specials().done);
    one->stop_ids.push_back(harmony_->specials().call);
  }
  GenerationPlan plan = plan_for(config_, AnswerKind::chat, "chatcmpl-" + request.id, params);
  plan.requests.push_back(std::move(*one));
  plan.make_decoder = [&](int) {
    DecoderOptions options = decoder_options(params, chance());
    if (parsed->constraint) options.cut_header = CutHeader::dropped;
    return make_chat_decoder(*harmony_, std::move(options));
  };
  auto reply = GenerationReply::start(service_, metrics_, std::move(plan));
  return reply ? *reply : make_reply(reply.error());
}

std::shared_ptr<Reply> Api::tokenize(const HttpRequest& request) {
  const auto body = parse_body(request.body);
  if (!body) return make_reply(body.error());
  const auto parsed = parse_tokenize(*body, scope());
  if (!parsed) return make_reply(parsed.error());
  Ids ids;
  if (const auto* text = std::get_if<std::string>(&parsed->input)) {
    ids = parsed->add_special_tokens ? encode(*text) : tokenizer_.encode(*text);
  } else {
    auto rendered = chat_ids(std::get<ChatRequest>(parsed->input));
    if (!rendered) return make_reply(rendered.error());
    ids = std::move(*rendered);
  }
  if (ids.size() > kMaxListedTokens) {
    return make_reply(ApiError{
        .message =
            fmt::format("the text has {} tokens, but at most {} are listed at once: split it",
                        ids.size(), kMaxListedTokens),
        .param = "prompt"});
  }
  Json answer = {{"count", ids.size()}, {"max_model_len", service_.capacity()}, {"tokens", ids}};
  if (parsed->return_token_strs) {
    Json texts = Json::array();
    for (const std::int32_t id : ids) texts.push_back(std::string(tokenizer_.token_bytes(id)));
    answer["token_strs"] = std::move(texts);
  }
  return make_reply({}, dump(answer));
}

std::shared_ptr<Reply> Api::detokenize(const HttpRequest& request) {
  const auto body = parse_body(request.body);
  if (!body) return make_reply(body.error());
  const auto parsed = parse_detokenize(*body, scope());
  if (!parsed) return make_reply(parsed.error());
  return make_reply({}, dump(Json{{"prompt", tokenizer_.decode(parsed->tokens)}}));
}

}  // namespace gauntlet::server
