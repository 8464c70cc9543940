#include "load/http/stream_sink.h"

#include <algorithm>

#include "load/http/event.h"

namespace gauntlet::load::inline http {
namespace {

constexpr std::size_t kMostErrorBytes = 4096;

double seconds(Clock::duration duration) { return std::chrono::duration<double>(duration).count(); }

}  // namespace

StreamSink::StreamSink(RequestRecord& record, Clock::time_point start, const Hook& hook)
    : record_(record),
      start_(start),
      hook_(hook),
      parser_([this](std::string_view data) { on_event(data); }) {}

void StreamSink::on_head(int status) { record_.http_status = status; }

bool StreamSink::on_body(std::string_view bytes, Clock::time_point at) {
  if (record_.http_status != 200) {
    error_body_ += bytes.substr(0, kMostErrorBytes - std::min(kMostErrorBytes, error_body_.size()));
    return true;
  }
  at_ = at;
  return parser_.feed(bytes);
}

void StreamSink::take_token(double at_s) {
  if (record_.num_events == 0) {
    record_.first_s = at_s;
    record_.gaps_s.reserve(static_cast<std::size_t>(record_.output_tokens));  // as planned
  } else {
    record_.gaps_s.push_back(static_cast<float>(at_s - last_token_s_));
  }
  ++record_.num_events;
  last_token_s_ = at_s;
}

void StreamSink::on_event(std::string_view data) {
  if (hook_) hook_(data, at_);
  const EventScan event = scan_event(data);
  if (event.has_text) take_token(seconds(at_ - start_));
  if (event.has_usage) {
    if (const auto usage = usage_of(data)) {
      record_.has_usage = true;
      record_.prompt_tokens = usage->prompt_tokens;
      record_.cached_tokens = usage->cached_tokens;
      record_.output_tokens = usage->completion_tokens;
    }
  }
  if (event.is_done) {
    is_done_ = true;
    record_.end_s = seconds(at_ - start_);
  } else if (event.has_error && !event.has_text) {
    record_.outcome = Outcome::server_error;
    record_.words = error_words(data);
  }
}

void StreamSink::finish(const ExchangeEnd& end) {
  if (!record_.has_usage) record_.output_tokens = record_.num_events;
  if (end.outcome != Outcome::ok) {
    record_.outcome = end.outcome;
    record_.words = end.words;
  } else if (record_.http_status != 200) {
    record_.outcome = Outcome::http_status;
    record_.words = error_words(error_body_);
  } else if (!is_done_ && record_.is_ok()) {
    record_.outcome = Outcome::protocol;
    record_.words = "the answer is no stream of events that ends with [DONE]";
  }
  if (!is_done_ || !record_.is_ok()) record_.end_s = seconds(Clock::now() - start_);
  if (record_.num_events == 0) record_.first_s = record_.end_s;
}

}  // namespace gauntlet::load::inline http
