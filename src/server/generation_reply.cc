#include "server/generation_reply.h"

#include <chrono>

namespace gauntlet::server {
namespace {

using engine::FinishEvent;
using engine::FinishReason;
using engine::TokenEvent;
using engine::Verdict;

/// Deltas of an answer that goes out whole: nobody waits for each.
constexpr std::size_t kWholePortion = 64;

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
                                 const GenerationPlan& plan)
    : service_(service),
      metrics_(metrics),
      delivery_(plan.delivery),
      choices_per_prompt_(plan.requests.front().num_choices),
      max_pending_(plan.max_pending * plan.requests.size() * choices_per_prompt_),
      started_s_(now_s()),
      choices_(plan.requests.size() * choices_per_prompt_),
      writer_(StreamWriter(plan.head, static_cast<int>(choices_.size()))) {
  if (delivery_ == Delivery::whole) {
    writer_.emplace<WholeWriter>(plan.head, static_cast<int>(choices_.size()));
  }
  for (std::size_t i = 0; i < choices_.size(); ++i) {
    choices_[i].decoder = plan.make_decoder(static_cast<int>(i));
  }
}

ApiResult<std::shared_ptr<Reply>> GenerationReply::start(engine::Service& service,
                                                         ServerMetrics& metrics,
                                                         GenerationPlan plan) {
  const std::shared_ptr<GenerationReply> reply(new GenerationReply(service, metrics, plan));
  int first_choice = 0;
  for (engine::ServiceRequest& request : plan.requests) {
    const auto id = service.submit(
        std::move(request), {.on_token =
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
  return std::shared_ptr<Reply>(reply);
}

bool GenerationReply::push(Event event) {
  const std::lock_guard lock(mutex_);
  if (abandoned_ || overflowed_) return false;
  const bool is_end = event.end.has_value();
  if (delivery_ == Delivery::streamed && !is_end && pending_.size() >= max_pending_) {
    overflowed_ = true;
  } else {
    pending_.push_back(std::move(event));
  }
  const bool is_due = delivery_ == Delivery::streamed
                          ? pending_.size() == 1 || overflowed_
                          : is_end || pending_.size() % kWholePortion == 0;
  if (wake_ && is_due) wake_();
  return !overflowed_;
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
  if (!delta.empty() && !push({.choice = choice, .delta = std::move(delta)})) return Verdict::stop;
  return state.decoder->stopped() ? Verdict::stop : Verdict::go_on;
}

void GenerationReply::on_finish(int choice, const FinishEvent& event) {
  metrics_.on_finish(event);
  ChoiceDecoder& decoder = *choices_[choice].decoder;
  Delta rest = decoder.finish();
  push({.choice = choice,
        .delta = std::move(rest),
        .end = event,
        .finish_word = finish_word(event.reason, decoder.num_tool_calls())});
}

void GenerationReply::on_ready(std::function<void()> wake) {
  const std::lock_guard lock(mutex_);
  wake_ = std::move(wake);
  if (!pending_.empty()) wake_();
}

void GenerationReply::abandon() {
  {
    const std::lock_guard lock(mutex_);
    wake_ = nullptr;
    if (std::exchange(abandoned_, true)) return;
    pending_.clear();
  }
  if (num_ended_ == std::ssize(choices_)) return;
  for (const engine::RequestId id : ids_) service_.cancel(id);
}

void GenerationReply::write(const Event& event, std::string& out) {
  if (auto* stream = std::get_if<StreamWriter>(&writer_)) {
    out += stream->delta(event.choice, event.delta);
    if (event.end) out += stream->finish(event.choice, event.finish_word);
  } else {
    auto& whole = std::get<WholeWriter>(writer_);
    whole.delta(event.choice, event.delta);
    if (event.end) whole.finish(event.choice, event.finish_word);
  }
}

void GenerationReply::count(const FinishEvent& end) {
  if (end.choice == 0) {  // choices of one prompt share it
    usage_.prompt_tokens += end.prompt_tokens;
    usage_.cached_tokens += end.reused_tokens;
  }
  usage_.completion_tokens += end.output_tokens;
  ++num_ended_;
}

Piece GenerationReply::fail(const ApiError& error, const std::string& out) {
  summary_.finish = "error";
  for (const engine::RequestId id : ids_) service_.cancel(id);
  if (!head_sent_) return {.head = head_of(error), .body = to_json(error), .is_last = true};
  return {.body = out + "data: " + to_json(error) + "\n\n", .is_last = true};
}

std::optional<Piece> GenerationReply::take() {
  std::deque<Event> events;
  bool overflowed = false;
  {
    const std::lock_guard lock(mutex_);
    events.swap(pending_);
    overflowed = overflowed_;
    if (first_token_s_) summary_.first_token_ms = (*first_token_s_ - started_s_) * 1e3;
  }
  std::string out;
  for (const Event& event : events) {
    if (event.end) {
      count(*event.end);
      if (auto error = failure(*event.end)) return fail(std::move(*error), std::move(out));
      summary_.finish = event.finish_word;
    }
    write(event, out);
  }
  if (overflowed) {
    return fail({.status = 503, .message = "the reader was too slow for its stream"},
                std::move(out));
  }
  const bool is_last = num_ended_ == std::ssize(choices_);
  if (is_last) out += std::visit([&](const auto& writer) { return writer.done(usage_); }, writer_);
  if (out.empty()) return std::nullopt;
  Piece piece{.body = std::move(out), .is_last = is_last};
  if (!std::exchange(head_sent_, true)) {
    piece.head = HttpHead{};
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

}  // namespace gauntlet::server
