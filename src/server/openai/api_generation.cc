// The endpoints that make or translate tokens.
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "server/openai/api.h"
#include "server/openai/chat_prompt.h"

namespace gauntlet::server::inline openai {
namespace {

constexpr std::int64_t kDefaultCompletionTokens = 16;  // OpenAI's
/// That are listed at once: a list is many times as large as its text.
constexpr std::size_t kMaxListedTokens = std::size_t{1} << 18;

/// Tokens of a whole answer, each with the alternatives that are listed beside it: with 20 of them
/// an answer of this size has about 70 MB.
constexpr std::int64_t kMaxWholeValues = std::int64_t{1} << 20;

/// How many tokens each choice of a whole answer can have.
std::int64_t max_whole_tokens(std::size_t num_prompts, const GenerationParams& params) {
  const std::int64_t values_per_token = 1 + params.top_log_probs.value_or(0);
  return std::max<std::int64_t>(1, kMaxWholeValues / (static_cast<std::int64_t>(num_prompts) *
                                                      params.num_choices * values_per_token));
}

DecoderOptions decoder_options(const GenerationParams& params, std::uint64_t call_seed) {
  return {.stops = params.stops,
          .stop_ids = params.stop_ids,
          .log_probs = params.top_log_probs ? LogProbs::shown : LogProbs::omitted,
          .call_seed = call_seed};
}

std::unique_ptr<AnswerWriter> writer_for(const ApiConfig& config, AnswerHead head,
                                         const GenerationParams& params, std::size_t num_prompts) {
  head.model = config.model.name;
  head.created_s = unix_now_s();
  head.log_probs = params.top_log_probs ? LogProbs::shown : LogProbs::omitted;
  head.stream_usage = params.stream_usage;
  const int num_choices = static_cast<int>(num_prompts) * params.num_choices;
  return make_answer_writer(std::move(head), params.delivery, num_choices);
}

/// Keeps an output from ending before it has so many tokens, by masks over what would end it. Where
/// a form allows nothing but an end, it ends.
void hold_ends_back(std::int64_t min_tokens, std::vector<std::int32_t> ends, std::int64_t vocab,
                    engine::ServiceRequest& request) {
  ends.insert(ends.end(), request.stop_ids.begin(), request.stop_ids.end());
  std::erase_if(ends, [&](std::int32_t id) { return id < 0 || id >= vocab; });
  request.allowed = [min_tokens, ends = std::move(ends), vocab,
                     form = std::move(request.allowed)](std::span<const std::int32_t> output) {
    std::vector<std::uint32_t> mask;
    if (form) mask = form(output);
    if (std::ssize(output) >= min_tokens) return mask;
    std::vector<std::uint32_t> held = mask;
    if (held.empty()) {
      held.assign(static_cast<std::size_t>((vocab + 31) / 32), ~std::uint32_t{0});
      if (vocab % 32 != 0) held.back() = (std::uint32_t{1} << (vocab % 32)) - 1;
    }
    for (const std::int32_t id : ends) held[id / 32] &= ~(std::uint32_t{1} << (id % 32));
    const bool is_left = std::ranges::any_of(held, [](std::uint32_t word) { return word != 0; });
    return is_left ? held : mask;
  };
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
  if (params.min_tokens > params.max_tokens.value_or(left)) {
    return ApiError{.message = "min_tokens asks for more tokens than there may be",
                    .param = "min_tokens"};
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

std::optional<ApiError> Api::check_volume(std::size_t num_prompts,
                                          const GenerationParams& params) const {
  const std::int64_t num_choices = static_cast<std::int64_t>(num_prompts) * params.num_choices;
  if (num_choices > service_.max_queue()) {
    return ApiError{
        .message = fmt::format("{} prompts with n = {} are {} answers, but this server "
                               "queues at most {}: split the request",
                               num_prompts, params.num_choices, num_choices, service_.max_queue()),
        .param = "n"};
  }
  const std::int64_t most = max_whole_tokens(num_prompts, params);
  if (params.delivery == Delivery::whole && params.max_tokens.value_or(1) > most) {
    const std::int64_t values = 1 + params.top_log_probs.value_or(0);
    return ApiError{
        .message = fmt::format("{} answers of {} tokens with {} values each are {} values, but an "
                               "answer that is not streamed holds at most {}: ask for at most {} "
                               "tokens, for less, or for a stream",
                               num_choices, *params.max_tokens, values,
                               num_choices * *params.max_tokens * values, kMaxWholeValues, most),
        .param = "max_tokens"};
  }
  return std::nullopt;
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
  if (const auto error = check_volume(parsed->prompts.size(), params)) return make_reply(*error);
  const std::uint64_t seed = params.seed.value_or(chance());
  GenerationPlan plan{
      .writer = writer_for(config_, {.id = "cmpl-" + request.id}, params, parsed->prompts.size()),
      .delivery = params.delivery,
      .max_pending = config_.max_pending};
  std::vector<std::string> echoes;  // by prompt
  const auto decoded = [&](const Ids& ids) { return tokenizer_.decode(ids); };
  for (Prompt& prompt : parsed->prompts) {
    const auto* text = std::get_if<std::string>(&prompt);
    Ids ids = text ? encode(*text) : std::get<Ids>(std::move(prompt));
    const bool is_default = !params.max_tokens;
    auto one = service_request(std::move(ids), params, "prompt");
    if (!one) return make_reply(one.error());
    if (is_default) {
      one->max_tokens =
          std::min(one->max_tokens, std::max(kDefaultCompletionTokens, params.min_tokens));
    }
    if (const auto error = constrain(parsed->constraint, *one)) return make_reply(*error);
    one->sampling.seed = seed;
    if (params.min_tokens > 0) {
      hold_ends_back(params.min_tokens, service_.end_ids(), config_.model.vocab, *one);
    }
    if (parsed->echo == EchoPrompt::yes) echoes.push_back(text ? *text : decoded(one->prompt));
    plan.requests.push_back(std::move(*one));
  }
  plan.make_decoder = [&](int choice) {
    DecoderOptions options = decoder_options(params, 0);
    options.special_tokens = parsed->special_tokens;
    if (!echoes.empty()) options.echo = echoes.at(choice / params.num_choices);
    return make_text_decoder(tokenizer_, std::move(options));
  };
  const auto reply = GenerationReply::start(service_, metrics_, std::move(plan));
  if (!reply) return make_reply(reply.error());
  return *reply;
}

ApiResult<GenerationPlan> Api::chat_plan(const ChatRequest& request, const FieldNames& names) {
  const auto in_its_words = [&](ApiError error) {
    if (error.param == "messages") error.param = names.input;
    if (error.param == "response_format") error.param = names.format;
    if (error.param == "max_tokens") error.param = names.max_tokens;
    return error;
  };
  const GenerationParams& params = request.params;
  if (const auto error = check_volume(1, params)) return in_its_words(*error);
  auto ids = chat_ids(request);
  if (!ids) return in_its_words(ids.error());
  auto one = service_request(std::move(*ids), params, names.input);
  if (!one) return in_its_words(one.error());
  if (params.delivery == Delivery::whole) {
    one->max_tokens = std::min(one->max_tokens, max_whole_tokens(1, params));
  }
  one->sampling.seed = params.seed.value_or(chance());
  auto constraint = request.constraint;
  if (constraint && request.effort) constraint->max_reasoning_tokens = one->max_tokens / 2;
  if (const auto error = constrain(constraint, *one)) return in_its_words(*error);
  if (params.end_of_sequence == engine::EndOfSequence::ends) {
    one->stop_ids.push_back(harmony_->specials().done);
    one->stop_ids.push_back(harmony_->specials().call);
  }
  if (params.min_tokens > 0) {
    hold_ends_back(params.min_tokens, service_.end_ids(), config_.model.vocab, *one);
  }
  GenerationPlan plan{.delivery = params.delivery, .max_pending = config_.max_pending};
  plan.requests.push_back(std::move(*one));
  plan.make_decoder = [this, &request](int) {
    DecoderOptions options = decoder_options(request.params, chance());
    if (request.constraint) options.cut_header = CutHeader::dropped;
    return make_chat_decoder(*harmony_, std::move(options));
  };
  return plan;
}

std::shared_ptr<Reply> Api::chat_completions(const HttpRequest& request) {
  if (const auto error = check_ready()) return make_reply(*error);
  const auto body = parse_body(request.body);
  if (!body) return make_reply(body.error());
  const auto parsed = parse_chat(*body, scope());
  if (!parsed) return make_reply(parsed.error());
  auto plan = chat_plan(*parsed, {});
  if (!plan) return make_reply(plan.error());
  plan->writer = writer_for(config_, {.kind = AnswerKind::chat, .id = "chatcmpl-" + request.id},
                            parsed->params, 1);
  const auto reply = GenerationReply::start(service_, metrics_, std::move(*plan));
  if (!reply) return make_reply(reply.error());
  return *reply;
}

std::shared_ptr<Reply> Api::tokenize(const HttpRequest& request) {
  const auto body = parse_body(request.body);
  if (!body) return make_reply(body.error());
  const auto parsed = parse_tokenize(*body, scope());
  if (!parsed) return make_reply(parsed.error());
  Ids ids;
  if (const auto& text = parsed->text) {
    ids = parsed->add_special_tokens ? encode(*text) : tokenizer_.encode(*text);
  } else {
    auto rendered = chat_ids(parsed->chat);
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

}  // namespace gauntlet::server::inline openai
