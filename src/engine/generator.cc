#include "engine/generator.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>

#include "engine/text_stream.h"

namespace gauntlet::engine {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

Error wrong_use(std::string message) { return {std::move(message), ErrorKind::wrong_use}; }

bool is_cancelled(const GenerationEvents& events) {
  return events.cancel && events.cancel->load(std::memory_order_relaxed);
}

/// A sequence's pages go back at the end, however it comes.
class Pages {
 public:
  Pages(KvPool& pool, SequenceId sequence) : pool_(pool), sequence_(sequence) {}
  ~Pages() { pool_.free(sequence_); }
  Pages(const Pages&) = delete;
  Pages& operator=(const Pages&) = delete;

 private:
  KvPool& pool_;
  SequenceId sequence_;
};

}  // namespace

std::string_view name_of(FinishReason reason) {
  switch (reason) {
    case FinishReason::eos:
      return "eos";
    case FinishReason::stop:
      return "stop";
    case FinishReason::length:
      return "length";
    case FinishReason::cancelled:
      return "cancelled";
    case FinishReason::expired:
      return "expired";
    case FinishReason::failed:
      return "failed";
  }
  fail("no such finish reason");
}

Generator::Generator(Executor& executor, const model::Tokenizer* tokenizer)
    : executor_(executor), tokenizer_(tokenizer) {}

Generator::~Generator() { forget(); }

Expected<void> Generator::check_request(const GenerationRequest& request) const {
  const model::ModelConfig& config = executor_.config();
  if (request.prompt.empty()) return wrong_use("the prompt has no tokens: give at least one");
  for (const std::int32_t id : request.prompt) {
    if (id < 0 || id >= config.vocab) {
      return wrong_use(
          fmt::format("token {} of the prompt is not in the vocabulary of {} (0 to {})", id,
                      config.name, config.vocab - 1));
    }
  }
  if (std::ssize(request.prompt) > config.max_positions) {
    return wrong_use(fmt::format("the prompt has {} tokens, but {} takes at most {}: shorten it",
                                 request.prompt.size(), config.name, config.max_positions));
  }
  if (request.max_tokens < 1) {
    return wrong_use(fmt::format("at least 1 token must be made, not {}", request.max_tokens));
  }
  if (std::ranges::any_of(request.stops, &std::string::empty)) {
    return wrong_use("a stop string is empty: it would end every text before it begins");
  }
  if (!request.stops.empty() && !tokenizer_) {
    return wrong_use(fmt::format("{} has no tokenizer, so there is no text to stop", config.name));
  }
  return validate(request.sampling);
}

SequenceId Generator::resume(const std::vector<std::int32_t>& prompt) {
  KvPool& kv = executor_.kv();
  // The last token has to be computed again: what follows it was not kept.
  const bool goes_on = kept_ && kept_prompt_.size() < prompt.size() &&
                       std::equal(kept_prompt_.begin(), kept_prompt_.end(), prompt.begin());
  const SequenceId sequence = goes_on ? kv.fork(*kept_) : kv.create();
  forget();
  return sequence;
}

void Generator::keep(SequenceId sequence, const std::vector<std::int32_t>& prompt) {
  kept_ = executor_.kv().fork(sequence);
  kept_prompt_ = prompt;
}

void Generator::forget() {
  if (kept_) executor_.kv().free(*kept_);
  kept_.reset();
}

Expected<std::int32_t> Generator::step(BatchItem item) {
  KvPool& kv = executor_.kv();
  const std::int64_t position = kv.length(item.sequence);
  const std::int64_t count = std::ssize(item.tokens);
  const bool wants_token = item.want != Want::nothing;
  bool reserved = kv.reserve(item.sequence, count);
  if (!reserved && kept_) {
    forget();
    reserved = kv.reserve(item.sequence, count);
  }
  if (!reserved) {
    return Error{
        fmt::format("the KV cache is full at position {}: ask for fewer tokens, or give "
                    "it more room",
                    position)};
  }
  std::vector<BatchItem> items;
  items.push_back(std::move(item));
  const ItemResult result = executor_.collect(executor_.submit(std::move(items))).front();
  if (wants_token && result.token == kNoChoice) {
    return Error{fmt::format("{} computed no finite logit at position {}: its weights are broken",
                             executor_.config().name, position + count - 1)};
  }
  return result.token;
}

Expected<std::optional<std::int32_t>> Generator::prefill(SequenceId sequence,
                                                         const GenerationRequest& request,
                                                         const GenerationEvents& events) {
  const std::int64_t total = std::ssize(request.prompt);
  std::int64_t done = executor_.kv().length(sequence);
  while (true) {
    if (is_cancelled(events)) return std::optional<std::int32_t>();
    const std::int64_t count = std::min(total - done, executor_.max_batch_tokens());
    const auto begin = request.prompt.begin() + done;
    done += count;
    const auto token = step({.sequence = sequence,
                             .tokens = {begin, begin + count},
                             .want = done == total ? Want::token : Want::nothing,
                             .sampling = request.sampling});
    if (!token) return token.error();
    if (events.on_prompt) events.on_prompt(done, total);
    if (done == total) return std::optional(*token);
  }
}

bool Generator::ends(std::int32_t token, const GenerationRequest& request) const {
  const auto& eos = executor_.config().eos_ids;
  return request.end_of_sequence == EndOfSequence::ends &&
         std::find(eos.begin(), eos.end(), token) != eos.end();
}

Expected<Generation> Generator::run(const GenerationRequest& asked,
                                    const GenerationEvents& events) {
  if (auto valid = check_request(asked); !valid) return valid.error();
  const auto start = Clock::now();
  GenerationRequest request = asked;
  request.sampling.step = 0;
  const SequenceId sequence = resume(request.prompt);
  const Pages pages(executor_.kv(), sequence);

  Generation result{.reused_tokens = executor_.kv().length(sequence)};
  const std::int64_t prompt_tokens = std::ssize(request.prompt);
  const auto first = prefill(sequence, request, events);
  if (!first) return first.error();
  const double prefill_s = seconds_since(start);
  result.first_token_ms = prefill_s * 1e3;
  if (!*first) {
    result.finish = FinishReason::cancelled;
    return result;
  }
  result.prefill_tokens_per_s =
      static_cast<double>(prompt_tokens - result.reused_tokens) / prefill_s;
  keep(sequence, request.prompt);

  std::optional<TextStream> text;
  if (tokenizer_) text.emplace(*tokenizer_, request.stops);
  const auto show = [&](std::int32_t token, const std::string& piece) {
    result.text += piece;
    if (events.on_token) events.on_token(token, piece);
  };
  const std::int64_t limit =
      std::min(request.max_tokens, executor_.config().max_positions - prompt_tokens + 1);
  for (std::int32_t token = **first;;) {
    result.output.push_back(token);
    const bool ended = ends(token, request);
    show(token, text && !ended ? text->push(token) : "");
    if (ended) {
      result.finish = FinishReason::eos;
    } else if (text && text->stopped()) {
      result.finish = FinishReason::stop;
    } else if (std::ssize(result.output) == limit) {
      result.finish = FinishReason::length;
    } else if (is_cancelled(events)) {
      result.finish = FinishReason::cancelled;
    } else {
      ++request.sampling.step;
      const auto next =
          step({.sequence = sequence, .tokens = {token}, .sampling = request.sampling});
      if (!next) return next.error();
      token = *next;
      continue;
    }
    break;
  }
  const auto steps = static_cast<double>(result.output.size() - 1);
  if (steps > 0) result.decode_tokens_per_s = steps / (seconds_since(start) - prefill_s);
  if (text) {
    if (const std::string rest = text->finish(); !rest.empty()) show(-1, rest);
  }
  return result;
}

}  // namespace gauntlet::engine
