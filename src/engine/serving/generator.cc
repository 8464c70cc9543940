#include "engine/serving/generator.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "engine/serving/text_stream.h"

namespace gauntlet::engine::inline serving {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

Error wrong_use(std::string message) { return {std::move(message), ErrorKind::wrong_use}; }

bool is_cancelled(const GenerationEvents& events) {
  return events.cancel && events.cancel->load(std::memory_order_relaxed);
}

/// What a request came to, as its events tell.
class Listener {
 public:
  Listener(const GenerationRequest& request, const GenerationEvents& events,
           const model::Tokenizer* tokenizer, const std::vector<std::int64_t>& eos_ids)
      : request_(request), events_(events), eos_ids_(eos_ids) {
    if (tokenizer) text_.emplace(*tokenizer, request.stops);
  }

  RequestEvents hears() {
    return {.on_prefill =
                [this](std::int64_t done) {
                  if (events_.on_prompt) events_.on_prompt(done, std::ssize(request_.prompt));
                },
            .on_token = [this](const TokenEvent& event) { return take(event.token); },
            .on_finish = [this](const FinishEvent& event) { end_ = event; }};
  }

  const std::optional<FinishEvent>& end() const { return end_; }

  Expected<Generation> result() && {
    if (end_->reason == FinishReason::failed) return Error{end_->error};
    generation_.finish = end_->reason;
    generation_.reused_tokens = end_->reused_tokens;
    generation_.speculation = end_->speculation;
    const double prompt = static_cast<double>(std::ssize(request_.prompt) - end_->reused_tokens);
    if (!generation_.output.empty()) {
      generation_.first_token_ms = first_token_s_ * 1e3;
      generation_.prefill_tokens_per_s = prompt / first_token_s_;
    }
    const auto steps = static_cast<double>(generation_.output.size()) - 1;
    if (steps > 0) generation_.decode_tokens_per_s = steps / (last_token_s_ - first_token_s_);
    if (text_) {
      if (const std::string rest = text_->finish(); !rest.empty()) show(-1, rest);
    }
    return std::move(generation_);
  }

 private:
  Verdict take(std::int32_t token) {
    last_token_s_ = seconds_since(start_);
    if (generation_.output.empty()) first_token_s_ = last_token_s_;
    generation_.output.push_back(token);
    const bool is_end = request_.end_of_sequence == EndOfSequence::ends &&
                        std::ranges::find(eos_ids_, token) != eos_ids_.end();
    show(token, text_ && !is_end ? text_->push(token) : "");
    return text_ && text_->stopped() ? Verdict::stop : Verdict::go_on;
  }

  void show(std::int32_t token, const std::string& piece) {
    generation_.text += piece;
    if (events_.on_token) events_.on_token(token, piece);
  }

  const GenerationRequest& request_;
  const GenerationEvents& events_;
  const std::vector<std::int64_t>& eos_ids_;
  const Clock::time_point start_ = Clock::now();
  std::optional<TextStream> text_;
  Generation generation_;
  std::optional<FinishEvent> end_;
  double first_token_s_ = 0;
  double last_token_s_ = 0;
};

}  // namespace

Generator::Generator(Executor& executor, const model::Tokenizer* tokenizer, Speculation speculation)
    : executor_(executor),
      tokenizer_(tokenizer),
      service_(executor,
               {.scheduler = {.max_step_tokens = executor.max_batch_tokens(), .max_running = 1},
                .speculation = std::move(speculation)}) {}

Expected<void> Generator::check_request(const GenerationRequest& request) const {
  if (request.max_tokens < 1) {
    return wrong_use(fmt::format("at least 1 token must be made, not {}", request.max_tokens));
  }
  if (std::ranges::any_of(request.stops, &std::string::empty)) {
    return wrong_use("a stop string is empty: it would end every text before it begins");
  }
  if (!request.stops.empty() && !tokenizer_) {
    return wrong_use(
        fmt::format("{} has no tokenizer, so there is no text to stop", executor_.config().name));
  }
  return {};
}

Expected<Generation> Generator::run(const GenerationRequest& request,
                                    const GenerationEvents& events) {
  if (auto valid = check_request(request); !valid) return valid.error();
  Listener listener(request, events, tokenizer_, executor_.config().eos_ids);
  const auto id = service_.submit({.prompt = request.prompt,
                                   .max_tokens = request.max_tokens,
                                   .sampling = request.sampling,
                                   .end_of_sequence = request.end_of_sequence},
                                  listener.hears());
  if (!id) return id.error();
  while (!listener.end()) {
    if (is_cancelled(events)) service_.cancel(*id);
    service_.step();
  }
  auto result = std::move(listener).result();
  const std::int64_t positions = executor_.config().max_positions;
  const std::int64_t wanted =
      std::min(request.max_tokens, positions - std::ssize(request.prompt) + 1);
  if (result && result->finish == FinishReason::length && std::ssize(result->output) < wanted) {
    return Error{
        fmt::format("the KV cache is full at position {}: ask for fewer tokens, or give it "
                    "more room",
                    service_.capacity())};
  }
  return result;
}

}  // namespace gauntlet::engine::inline serving
