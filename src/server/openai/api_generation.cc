// The endpoints that make or translate tokens.
#include <fmt/format.h>

#include <algorithm>
#include <limits>
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

/// The same where a tree is made of it, at about a kilobyte each.
constexpr std::int64_t kMaxTreeValues = std::int64_t{1} << 16;

DecoderOptions decoder_options(const GenerationParams& params, std::uint64_t call_seed) {
  return {.stops = params.stops,
          .stop_ids = params.stop_ids,
          .log_probs = params.top_log_probs ? LogProbs::shown : LogProbs::omitted,
          .call_seed = call_seed};
}

/// What an answer repeats of prompts, in every choice: their tokens, and the log-probabilities of
/// those, which wait in memory, streamed or not.
std::optional<ApiError> check_shown_prompts(std::int64_t num_tokens,
                                            const GenerationParams& params) {
  const std::int64_t values_per_token = 1 + params.prompt_log_probs.value_or(0);
  const std::int64_t values = num_tokens * params.num_choices * values_per_token;
  if (values <= kMaxWholeValues) return std::nullopt;
  return ApiError{.message = fmt::format("prompts that are shown are {} values, but an answer "
                                         "repeats at most {}: ask for fewer prompts, choices or "
                                         "alternatives",
                                         values, kMaxWholeValues),
                  .param = "prompt"};
}

std::unique_ptr<AnswerWriter> writer_for(const ApiConfig& config, AnswerHead head,
                                         const GenerationParams& params, std::size_t num_prompts) {
  head.model = config.model.name;
  head.created_s = unix_now_s();
  head.log_probs = params.top_log_probs ? LogProbs::shown : LogProbs::omitted;
  head.stream_usage = params.stream_usage;
  head.token_ids = params.token_ids;
  head.service_tier = params.service_tier;
  head.choices_per_prompt = params.num_choices;
  const int num_choices = static_cast<int>(num_prompts) * params.num_choices;
  return make_answer_writer(std::move(head), params.delivery, num_choices);
}

/// Keeps an output from ending before it has so many tokens, by masks over what would end it. Where
/// a form allows nothing but an end, it ends.
class HeldEnds final : public engine::MaskCursor {
 public:
  HeldEnds(std::int64_t min_tokens, std::vector<std::int32_t> ends, std::int64_t vocab,
           std::unique_ptr<engine::MaskCursor> form)
      : left_(min_tokens), ends_(std::move(ends)), vocab_(vocab), form_(std::move(form)) {}

  std::vector<std::uint32_t> mask() override {
    std::vector<std::uint32_t> mask;
    if (form_) mask = form_->mask();
    if (left_ <= 0) return mask;
    std::vector<std::uint32_t> held = mask;
    if (held.empty()) {
      held.assign(static_cast<std::size_t>((vocab_ + 31) / 32), ~std::uint32_t{0});
      if (vocab_ % 32 != 0) held.back() = (std::uint32_t{1} << (vocab_ % 32)) - 1;
    }
    for (const std::int32_t id : ends_) held[id / 32] &= ~(std::uint32_t{1} << (id % 32));
    const bool is_left = std::ranges::any_of(held, [](std::uint32_t word) { return word != 0; });
    return is_left ? held : mask;
  }

  void accept(std::int32_t token) override {
    --left_;
    if (form_) form_->accept(token);
  }

  std::unique_ptr<engine::MaskCursor> fork() const override {
    return std::make_unique<HeldEnds>(left_, ends_, vocab_, form_ ? form_->fork() : nullptr);
  }

 private:
  std::int64_t left_;
  std::vector<std::int32_t> ends_;
  std::int64_t vocab_;
  std::unique_ptr<engine::MaskCursor> form_;  // none: all tokens may follow
};

void hold_ends_back(std::int64_t min_tokens, std::vector<std::int32_t> ends, std::int64_t vocab,
                    engine::ServiceRequest& request) {
  ends.insert(ends.end(), request.stop_ids.begin(), request.stop_ids.end());
  std::erase_if(ends, [&](std::int32_t id) { return id < 0 || id >= vocab; });
  request.allowed = engine::TokenMask(std::make_shared<const HeldEnds>(
      min_tokens, std::move(ends), vocab, request.allowed ? request.allowed.start() : nullptr));
}

/// A list as a header can hold it: printable ASCII, and not too long.
std::string header_text(const std::vector<std::string>& list) {
  constexpr std::size_t kMaxBytes = 1000;
  std::string text;
  for (const std::string& one : list) {
    if (!text.empty()) text += ", ";
    text += one;
    if (text.size() <= kMaxBytes) continue;
    text.replace(kMaxBytes - 3, text.npos, "...");
    break;
  }
  std::ranges::replace_if(text, [](char byte) { return byte < ' ' || byte > '~'; }, '?');
  return text;
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
  const std::int64_t wanted = params.max_tokens.value_or(1);
  if (left < wanted) {
    return ApiError{
        .message = fmt::format("the prompt has {} tokens and {} more are asked for, but "
                               "this model holds {} in all: shorten one of them",
                               given, wanted, capacity),
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
                                .top_log_probs = params.top_log_probs,
                                .prompt_log_probs = params.prompt_log_probs};
}

std::int64_t Api::max_answer_tokens(std::size_t num_prompts, const GenerationParams& params,
                                    AnswerVolume volume) {
  const bool is_tree = volume == AnswerVolume::small && params.top_log_probs;
  if (params.delivery == Delivery::streamed && !is_tree) {
    return std::numeric_limits<std::int64_t>::max();
  }
  const std::int64_t most = is_tree ? kMaxTreeValues : kMaxWholeValues;
  const std::int64_t values_per_token = 1 + params.top_log_probs.value_or(0);
  return std::max<std::int64_t>(
      1, most / (static_cast<std::int64_t>(num_prompts) * params.num_choices * values_per_token));
}

std::optional<ApiError> Api::check_volume(const Asked& asked, std::size_t num_prompts,
                                          const GenerationParams& params,
                                          AnswerVolume volume) const {
  const std::int64_t num_choices = static_cast<std::int64_t>(num_prompts) * params.num_choices;
  const std::int64_t max_queue = service_.max_queue(asked.caller());
  if (num_choices > max_queue) {
    return ApiError{.message = fmt::format("{} prompts with n = {} are {} answers, but this server "
                                           "queues at most {}{}: split the request",
                                           num_prompts, params.num_choices, num_choices, max_queue,
                                           config_.keys ? " of this key" : ""),
                    .param = "n"};
  }
  const std::int64_t most = max_answer_tokens(num_prompts, params, volume);
  if (params.max_tokens.value_or(1) > most) {
    const std::int64_t values = 1 + params.top_log_probs.value_or(0);
    const bool is_small = volume == AnswerVolume::small && params.top_log_probs;
    return ApiError{
        .message = fmt::format(
            "{} answers of {} tokens with {} values each are {} values, but {} "
            "holds at most {}: ask for at most {} tokens, or for less{}",
            num_choices, *params.max_tokens, values, num_choices * *params.max_tokens * values,
            is_small ? "a response with log-probabilities" : "an answer that is not streamed",
            is_small ? kMaxTreeValues : kMaxWholeValues, most, is_small ? "" : ", or for a stream"),
        .param = "max_tokens"};
  }
  return std::nullopt;
}

ApiResult<Api::Headers> Api::constrain(const std::optional<OutputConstraint>& constraint,
                                       engine::ServiceRequest& request) const {
  if (!constraint) return Headers{};
  if (!config_.constraints) {
    if (constraint->form == OutputForm::free) return Headers{};
    const char* param =
        constraint->form == OutputForm::tool_call ? "tool_choice" : "response_format";
    return ApiError{
        .message = fmt::format("{} asks for a form that this server cannot enforce", param),
        .param = param};
  }
  auto compiled = config_.constraints->compile(*constraint);
  if (!compiled) return compiled.error();
  request.allowed = std::move(compiled->mask);
  if (compiled->unenforced.empty()) return Headers{};
  return Headers{{"x-gauntlet-unenforced", header_text(compiled->unenforced)}};
}

std::shared_ptr<Reply> Api::completions(const Asked& asked) {
  if (const auto error = check_ready()) return make_reply(*error);
  const auto body = parse_body(asked.request.body);
  if (!body) return make_reply(body.error());
  auto parsed = parse_completion(*body, scope());
  if (!parsed) return make_reply(parsed.error());
  GenerationParams& params = parsed->params;
  if (const auto error = check_volume(asked, parsed->prompts.size(), params, AnswerVolume::large))
    return make_reply(*error);
  const std::uint64_t seed = params.seed.value_or(chance());
  GenerationPlan plan{.delivery = params.delivery,
                      .token_ids = params.token_ids,
                      .account = asked.account.name,
                      .max_pending = config_.max_pending};
  const bool is_scored = params.prompt_log_probs.has_value();
  const bool says_prompt = is_scored && parsed->shown_prompt == ShownPrompt::text;
  AnswerHead head{.id = "cmpl-" + asked.request.id};
  if (is_scored && !says_prompt) head.prompt_log_probs = LogProbs::shown;
  struct Shown {
    std::string echo;
    std::size_t hidden = 0;  // tokens put before its text
  };
  std::vector<Shown> shown;  // by prompt
  const bool is_shown =
      is_scored || parsed->echo == EchoPrompt::yes || params.token_ids == TokenIds::shown;
  std::int64_t num_shown = 0;  // tokens of prompts
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
    auto headers = constrain(parsed->constraint, *one);
    if (!headers) return make_reply(headers.error());
    plan.headers = std::move(*headers);
    one->sampling.seed = seed;
    one->caller = asked.caller();
    if (params.min_tokens > 0) {
      hold_ends_back(params.min_tokens, service_.end_ids(), config_.model.vocab, *one);
    }
    if (is_shown) num_shown += std::ssize(one->prompt);
    if (const auto error = check_shown_prompts(num_shown, params)) return make_reply(*error);
    Shown& last = shown.emplace_back(Shown{.hidden = text && config_.model.bos ? 1u : 0u});
    if (parsed->echo == EchoPrompt::yes && !says_prompt) {
      last.echo = text ? *text : tokenizer_.decode(one->prompt);
    }
    if (params.token_ids == TokenIds::shown) head.prompts.push_back(one->prompt);
    plan.requests.push_back(std::move(*one));
  }
  plan.writer = writer_for(config_, std::move(head), params, plan.requests.size());
  plan.make_decoder = [&](int choice) {
    DecoderOptions options = decoder_options(params, 0);
    options.special_tokens = parsed->special_tokens;
    options.echo = shown.at(choice / params.num_choices).echo;
    options.hidden_prompt = shown.at(choice / params.num_choices).hidden;
    if (is_scored) options.prompt = parsed->shown_prompt;
    return make_text_decoder(tokenizer_, std::move(options));
  };
  const auto reply = GenerationReply::start(service_, metrics_, std::move(plan));
  if (!reply) return make_reply(reply.error());
  return *reply;
}

ApiResult<GenerationPlan> Api::chat_plan(const Asked& asked, const ChatRequest& request,
                                         const FieldNames& names) {
  const auto in_its_words = [&](ApiError error) {
    if (error.param == "messages" || error.param == "prompt") error.param = names.input;
    if (error.param == "response_format") error.param = names.format;
    if (error.param == "max_tokens") error.param = names.max_tokens;
    return error;
  };
  const GenerationParams& params = request.params;
  if (const auto error = check_volume(asked, 1, params, names.volume)) return in_its_words(*error);
  auto ids = chat_ids(request);
  if (!ids) return in_its_words(ids.error());
  auto one = service_request(std::move(*ids), params, names.input);
  if (!one) return in_its_words(one.error());
  one->max_tokens = std::min(one->max_tokens, max_answer_tokens(1, params, names.volume));
  one->sampling.seed = params.seed.value_or(chance());
  one->caller = asked.caller();
  auto constraint = request.constraint;
  if (constraint && request.effort) constraint->max_reasoning_tokens = one->max_tokens / 2;
  auto headers = constrain(constraint, *one);
  if (!headers) return in_its_words(headers.error());
  if (params.end_of_sequence == engine::EndOfSequence::ends) {
    one->stop_ids.push_back(harmony_->specials().done);
    one->stop_ids.push_back(harmony_->specials().call);
  }
  if (params.min_tokens > 0) {
    hold_ends_back(params.min_tokens, service_.end_ids(), config_.model.vocab, *one);
  }
  if (params.prompt_log_probs) {
    const auto error = check_shown_prompts(std::ssize(one->prompt), params);
    if (error) return in_its_words(*error);
  }
  GenerationPlan plan{.delivery = params.delivery,
                      .token_ids = params.token_ids,
                      .headers = std::move(*headers),
                      .account = asked.account.name,
                      .max_pending = config_.max_pending};
  plan.requests.push_back(std::move(*one));
  plan.make_decoder = [this, &request](int) {
    DecoderOptions options = decoder_options(request.params, chance());
    if (request.constraint && request.constraint->form != OutputForm::free) {
      options.cut_header = CutHeader::dropped;
    }
    return make_chat_decoder(*harmony_, std::move(options));
  };
  return plan;
}

std::shared_ptr<Reply> Api::chat_completions(const Asked& asked) {
  if (const auto error = check_ready()) return make_reply(*error);
  const auto body = parse_body(asked.request.body);
  if (!body) return make_reply(body.error());
  const auto parsed = parse_chat(*body, scope());
  if (!parsed) return make_reply(parsed.error());
  auto plan = chat_plan(asked, *parsed, {});
  if (!plan) return make_reply(plan.error());
  AnswerHead head{.kind = AnswerKind::chat, .id = "chatcmpl-" + asked.request.id};
  if (parsed->params.prompt_log_probs) head.prompt_log_probs = LogProbs::shown;
  if (parsed->params.token_ids == TokenIds::shown) {
    head.prompts.push_back(plan->requests.front().prompt);
  }
  plan->writer = writer_for(config_, std::move(head), parsed->params, 1);
  const auto reply = GenerationReply::start(service_, metrics_, std::move(*plan));
  if (!reply) return make_reply(reply.error());
  return *reply;
}

std::shared_ptr<Reply> Api::tokenize(const Asked& asked) {
  const auto body = parse_body(asked.request.body);
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

std::shared_ptr<Reply> Api::detokenize(const Asked& asked) {
  const auto body = parse_body(asked.request.body);
  if (!body) return make_reply(body.error());
  const auto parsed = parse_detokenize(*body, scope());
  if (!parsed) return make_reply(parsed.error());
  return make_reply({}, dump(Json{{"prompt", tokenizer_.decode(parsed->tokens)}}));
}

}  // namespace gauntlet::server::inline openai
