#include "server/openai/generate/generation_reply.h"

#include <algorithm>
#include <chrono>
#include <iterator>

namespace gauntlet::server::inline openai {
namespace {

using engine::FinishEvent;
using engine::FinishReason;
using engine::TokenEvent;
using engine::Verdict;

/// Deltas of an answer that goes out whole: nobody waits for each.
constexpr std::size_t kWholePortion = 64;
/// Tokens of a prompt that go out together.
constexpr std::size_t kPromptPortion = 16;
/// What is written, and what is sent, before others have their turn.
constexpr std::size_t kMostEvents = 512;
constexpr std::size_t kMostValues = 4096;
constexpr std::size_t kMostBytes = 256 << 10;
/// What one value comes to.
constexpr std::size_t kValueBytes = 64;
/// What an event of a stream comes to, most often: the text grows once or not at all.
constexpr std::size_t kEventBytes = 256;

double now_s() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

std::optional<ApiError> failure(const FinishEvent& end) {
  switch (end.reason) {
    case FinishReason::cancelled:
      return ApiError{.status = 503, .message = "the server ended the request"};
    case FinishReason::expired:
      return ApiError{.status = 503, .message = end.error, .retry_after_s = 1};
    case FinishReason::failed:
      return ApiError{.status = 500, .message = end.error};
    default:
      return std::nullopt;
  }
}

ApiError refusal(const Error& error) {
  if (error.kind == ErrorKind::wrong_use) return {.message = error.message};
  if (error.kind == ErrorKind::check_failed) return {.status = 503, .message = error.message};
  return {.status = 429, .message = error.message, .code = "queue_full", .retry_after_s = 1};
}

}  // namespace

GenerationReply::GenerationReply(engine::Service& service, ServerMetrics& metrics,
                                 GenerationPlan& plan)
    : service_(service),
      metrics_(metrics),
      delivery_(plan.delivery),
      token_ids_(plan.token_ids),
      choices_per_prompt_(plan.requests.front().num_choices),
      account_(plan.account),
      max_pending_(plan.max_pending * plan.requests.size() * choices_per_prompt_),
      started_s_(now_s()),
      choices_(plan.requests.size() * choices_per_prompt_),
      writer_(std::move(plan.writer)),
      headers_(std::move(plan.headers)) {
  for (std::size_t i = 0; i < choices_.size(); ++i) {
    choices_[i].decoder = plan.make_decoder(static_cast<int>(i));
  }
}

ApiResult<std::shared_ptr<GenerationReply>> GenerationReply::start(engine::Service& service,
                                                                   ServerMetrics& metrics,
                                                                   GenerationPlan plan) {
  std::shared_ptr<GenerationReply> reply(new GenerationReply(service, metrics, plan));
  int first_choice = 0;
  for (engine::ServiceRequest& request : plan.requests) {
    if (!reply->ids_.empty())
      request.caller.call = reply->ids_.front();  // one call, one place in line
    const auto id = service.submit(
        std::move(request), {.on_prompt =
                                 [reply, first_choice](const engine::PromptEvent& event) {
                                   reply->on_prompt(first_choice + event.choice, event);
                                 },
                             .on_token =
                                 [reply, first_choice](const TokenEvent& event) {
                                   return reply->on_token(first_choice + event.choice, event);
                                 },
                             .on_finish =
                                 [reply, first_choice](const FinishEvent& event) {
                                   reply->on_finish(first_choice + event.choice, event);
                                 }});
    if (!id) {
      reply->abandon();
      return refusal(id.error());
    }
    reply->ids_.push_back(*id);
    first_choice += reply->choices_per_prompt_;
  }
  return reply;
}

std::size_t GenerationReply::Event::num_values() const {
  std::size_t count = 1;
  if (!more) return count;
  for (const ShownLogProb& shown : more->log_probs) count += shown.top.size();
  return count;
}

GenerationReply::Event GenerationReply::event_of(int choice, Delta&& delta) {
  if (delta.is_content()) return {.choice = choice, .content = std::move(delta.content)};
  return {.choice = choice, .content = {}, .more = std::make_unique<Delta>(std::move(delta))};
}

bool GenerationReply::push(Event&& event) {
  const std::lock_guard lock(mutex_);
  if (abandoned_ || overflowed_) return false;
  const bool is_end = event.end != nullptr;
  ++num_pending_;
  pending_values_ += event.num_values();
  pending_ends_ += is_end;
  pending_.push_back(std::move(event));
  // A stream that waits too long has its reader looked at; until then nobody is blamed.
  const bool is_due = delivery_ == Delivery::streamed
                          ? num_pending_ == 1 || num_pending_ % max_pending_ == 0
                          : is_end || num_pending_ % kWholePortion == 0;
  if (wake_ && is_due) wake_();
  return true;
}

void GenerationReply::reader_is_blocked() {
  const std::lock_guard lock(mutex_);
  if (delivery_ == Delivery::streamed && num_pending_ >= max_pending_) overflowed_ = true;
}

/// In portions: whoever writes them out serves others in between.
void GenerationReply::on_prompt(int choice, const engine::PromptEvent& event) {
  const std::span<const engine::PromptToken> tokens = event.tokens;
  for (std::size_t at = 0; at < tokens.size(); at += kPromptPortion) {
    const auto some = tokens.subspan(at, std::min(kPromptPortion, tokens.size() - at));
    Delta delta = choices_[choice].decoder->push_prompt(some);
    if (!delta.empty() && !push(event_of(choice, std::move(delta)))) return;
  }
}

Verdict GenerationReply::on_token(int choice, const TokenEvent& event) {
  Choice& state = choices_[choice];
  const double now = now_s();
  if (state.begun) {
    metrics_.inter_token_latency_s.observe(now - state.last_token_s);
  } else {
    metrics_.time_to_first_token_s.observe(now - started_s_);
    const std::lock_guard lock(mutex_);
    if (!first_token_s_) first_token_s_ = now;
  }
  state.begun = true;
  state.last_token_s = now;
  Delta delta = state.decoder->push(event);
  if (token_ids_ == TokenIds::shown) delta.token_ids.push_back(event.token);
  if (!delta.empty() && !push(event_of(choice, std::move(delta)))) return Verdict::stop;
  return state.decoder->stopped() ? Verdict::stop : Verdict::go_on;
}

void GenerationReply::on_finish(int choice, const FinishEvent& event) {
  metrics_.on_finish(event);
  // Choices of one prompt share it.
  metrics_.accounts.add(account_, {.prompt_tokens = event.choice == 0 ? event.prompt_tokens : 0,
                                   .output_tokens = event.output_tokens});
  ChoiceDecoder& decoder = *choices_[choice].decoder;
  Event last = event_of(choice, decoder.finish());
  last.end = std::make_unique<const End>(
      End{.event = event,
          .finish_word = finish_word(event.reason, decoder.num_tool_calls()),
          .reasoning_tokens = decoder.num_reasoning_tokens()});
  push(std::move(last));
}

void GenerationReply::on_ready(std::function<void()> wake) {
  const std::lock_guard lock(mutex_);
  wake_ = std::move(wake);
  if (num_pending_ > 0) wake_();
}

void GenerationReply::abandon() {
  {
    const std::lock_guard lock(mutex_);
    wake_ = nullptr;
    if (std::exchange(abandoned_, true)) return;
    std::vector<Event>().swap(pending_);
    num_pending_ = 0;
    pending_values_ = 0;
    pending_ends_ = 0;
  }
  if (num_ended_ < std::ssize(choices_)) cancel();
}

void GenerationReply::cancel() {
  for (const engine::RequestId id : ids_) service_.cancel(id);
}

void GenerationReply::write(Event&& event, std::string& out) {
  if (!event.more) text_.content = std::move(event.content);
  writer_->delta(event.choice, event.more ? *event.more : text_, out);
  if (event.end) out += writer_->finish(event.choice, event.end->finish_word);
}

void GenerationReply::count(const End& end) {
  if (end.event.choice == 0) {  // choices of one prompt share it
    usage_.prompt_tokens += end.event.prompt_tokens;
    usage_.cached_tokens += end.event.reused_tokens;
  }
  usage_.completion_tokens += end.event.output_tokens;
  usage_.reasoning_tokens += end.reasoning_tokens;
  const engine::SpeculationCounts& guessed = end.event.speculation;
  usage_.accepted_guesses += guessed.accepted;
  usage_.rejected_guesses += guessed.drafted - guessed.accepted;
  ++num_ended_;
}

Piece GenerationReply::fail(const ApiError& error, const std::string& out) {
  summary_.finish = "error";
  cancel();
  const std::string last = writer_->failed(error);
  if (!head_sent_) return {.head = head_of(error), .body = to_json(error), .is_last = true};
  return {.body = out + last, .is_last = true};
}

std::size_t GenerationReply::effort() const {
  if (!unsent_.empty()) return 0;
  const std::lock_guard lock(mutex_);
  const bool ends = num_ended_ + pending_ends_ == std::ssize(choices_);
  return std::min(pending_values_, kMostValues) * kValueBytes +
         (ends ? writer_->unwritten_bytes() : 0);
}

std::span<GenerationReply::Event> GenerationReply::next_events() {
  if (abandoned_) return {};
  if (num_taken_ == taken_.size()) {
    // A backlog that is over keeps no memory.
    if (taken_.capacity() > kMostEvents) std::vector<Event>().swap(taken_);
    taken_.clear();
    num_taken_ = 0;
    taken_.swap(pending_);
  }
  const auto left = std::span(taken_).subspan(num_taken_);
  std::size_t count = 0, num_values = 0;
  while (count < left.size() && count < kMostEvents && num_values < kMostValues) {
    num_values += left[count].num_values();
    pending_ends_ -= left[count].end != nullptr;
    ++count;
  }
  num_taken_ += count;
  num_pending_ -= count;
  pending_values_ -= num_values;
  return left.first(count);
}

std::optional<Piece> GenerationReply::take() {
  if (!unsent_.empty()) return next_part();
  std::span<Event> events;
  bool overflowed = false;
  {
    const std::lock_guard lock(mutex_);
    events = next_events();
    if (num_pending_ > 0 && wake_) wake_();
    overflowed = overflowed_;
    if (first_token_s_) summary_.first_token_ms = (*first_token_s_ - started_s_) * 1e3;
  }
  std::string out;
  if (delivery_ == Delivery::streamed) out.reserve(events.size() * kEventBytes);
  for (Event& next : events) {
    Event event = std::move(next);  // and gone once it is written
    if (event.end) {
      count(*event.end);
      if (auto error = failure(event.end->event)) return fail(*error, out);
      summary_.finish = event.end->finish_word;
    }
    write(std::move(event), out);
  }
  if (overflowed) {
    return fail({.status = 503, .message = "the reader was too slow for its stream"}, out);
  }
  unsent_.append_block(std::move(out));
  if (num_ended_ == std::ssize(choices_)) unsent_.append(writer_->done_in_blocks(usage_));
  if (unsent_.empty()) return std::nullopt;
  return next_part();
}

Piece GenerationReply::next_part() {
  Piece piece{.body = unsent_.take(kMostBytes)};
  piece.is_last = unsent_.empty() && num_ended_ == std::ssize(choices_);
  if (!std::exchange(head_sent_, true)) {
    piece.head = HttpHead{.headers = std::move(headers_)};
    if (delivery_ == Delivery::streamed) {
      piece.head->content_type = "text/event-stream; charset=utf-8";
      piece.head->headers.emplace_back("Cache-Control", "no-cache");
    }
  }
  return piece;
}

std::optional<ReplySummary> GenerationReply::summary() const {
  ReplySummary summary = summary_;
  summary.prompt_tokens = usage_.prompt_tokens;
  summary.output_tokens = usage_.completion_tokens;
  return summary;
}

}  // namespace gauntlet::server::inline openai
