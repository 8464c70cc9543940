#include "engine/measure/closed_loop.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <optional>
#include <string>

#include "core/random.h"
#include "engine/measure/speed.h"

namespace gauntlet::engine::inline measure {
namespace {

/// Requests that follow each other, and what came of those that count.
class Streams {
 public:
  Streams(Service& service, const ClosedLoop& loop, std::int64_t vocab)
      : service_(service), loop_(loop), vocab_(vocab) {}

  /// Between steps.
  Expected<void> start_next() {
    const bool counts = num_started_ >= loop_.streams;
    if (num_started_++ == loop_.streams) first_start_s_ = now_s();
    ServiceRequest request{.max_tokens = loop_.output_tokens,
                           .end_of_sequence = EndOfSequence::ignored};
    for (std::int64_t i = 0; i < loop_.prompt_tokens; ++i) request.prompt.push_back(random_token());
    const std::size_t index = texts_.size();
    texts_.push_back(request.prompt);
    RequestEvents events;
    events.on_token = [this, counts, index](const TokenEvent& event) {
      num_tokens_ += counts;
      texts_[index].push_back(event.token);
      return Verdict::go_on;
    };
    events.on_finish = [this](const FinishEvent& event) {
      ++num_ended_;
      last_end_s_ = now_s();
      if (event.reason != FinishReason::length) fault_ = event.error;
    };
    const auto id = service_.submit(std::move(request), std::move(events));
    return id ? Expected<void>() : id.error();
  }

  std::int64_t num_ended() const { return num_ended_; }
  std::int64_t num_under_way() const { return num_started_ - num_ended_; }
  const std::optional<std::string>& fault() const { return fault_; }

  ClosedLoopRate rate() const {
    ClosedLoopRate rate{
        .seconds = last_end_s_ - first_start_s_, .tokens = num_tokens_, .texts = texts_};
    if (rate.seconds > 0) rate.tokens_per_s = static_cast<double>(rate.tokens) / rate.seconds;
    return rate;
  }

 private:
  static double now_s() {
    const auto since = std::chrono::steady_clock::now().time_since_epoch();
    return std::chrono::duration<double>(since).count();
  }
  std::int32_t random_token() {
    constexpr std::uint64_t kSeed = 0x7F4A7C15C2B2AE3D;
    return static_cast<std::int32_t>(
        Random(kSeed).below(static_cast<std::uint64_t>(vocab_), num_drawn_++));
  }

  Service& service_;
  const ClosedLoop& loop_;
  const std::int64_t vocab_;
  std::uint64_t num_drawn_ = 0;
  std::int64_t num_started_ = 0;
  std::int64_t num_ended_ = 0;
  std::int64_t num_tokens_ = 0;
  double first_start_s_ = 0;
  double last_end_s_ = 0;
  std::optional<std::string> fault_;
  std::vector<std::vector<std::int32_t>> texts_;  // as they were started
};

/// The gaps of an executor's steps, for as long as this lives.
struct TimedGaps {
  explicit TimedGaps(Executor& timed) : executor(timed) { executor.time_gaps(&us); }
  ~TimedGaps() { executor.time_gaps(nullptr); }
  TimedGaps(const TimedGaps&) = delete;
  TimedGaps& operator=(const TimedGaps&) = delete;

  Executor& executor;
  std::vector<double> us;
};

}  // namespace

Expected<ClosedLoop> ClosedLoop::parse(const std::string& text) {
  std::int64_t numbers[4] = {};
  const char* at = text.data();
  const char* const end = at + text.size();
  for (int i = 0; i < 4; ++i) {
    const auto [next, error] = std::from_chars(at, end, numbers[i]);
    const bool ends_well = i < 3 ? next != end && *next == ':' : next == end;
    if (error != std::errc() || numbers[i] < 1 || numbers[i] > (1 << 20) || !ends_well) {
      return Error{fmt::format("'{}' is not STREAMS:PROMPT:OUTPUT:REQUESTS, as 16:32:256:64", text),
                   ErrorKind::wrong_use};
    }
    at = next + 1;
  }
  const ClosedLoop loop{.streams = numbers[0],
                        .prompt_tokens = numbers[1],
                        .output_tokens = numbers[2],
                        .requests = numbers[3]};
  if (loop.requests < loop.streams) {
    return Error{fmt::format("a closed loop of {} streams needs {} requests or more: a whole wave "
                             "of them is the least that can be measured",
                             loop.streams, loop.streams),
                 ErrorKind::wrong_use};
  }
  return loop;
}

std::int64_t ClosedLoop::positions() const {
  return SpeedTest{.batch = streams, .context = prompt_tokens, .tokens = output_tokens}.positions();
}

Expected<ClosedLoopRate> run_closed_loop(Executor& executor, const ServiceConfig& policies,
                                         const ClosedLoop& loop,
                                         const std::function<void(std::int64_t)>& progress) {
  ServiceConfig config = policies;
  config.scheduler.max_running = loop.streams;
  config.scheduler.max_step_tokens = executor.max_batch_tokens();
  TimedGaps gaps(executor);  // before the service, which ends with nothing in flight
  Service service(executor, config);
  Streams streams(service, loop, executor.config().vocab);
  const std::int64_t requests = loop.streams + loop.requests;
  for (std::int64_t ended = 0; ended < requests;) {
    while (streams.num_under_way() < std::min(loop.streams, requests - ended)) {
      if (auto started = streams.start_next(); !started) return started.error();
    }
    service.step();
    if (streams.fault()) return Error{"a request failed: " + *streams.fault()};
    if (streams.num_ended() == ended) continue;
    ended = streams.num_ended();
    if (progress) progress(ended);
  }
  if (const std::string why = service.stats().draft_fault; !why.empty()) {
    return Error{"who guesses has failed: " + why};
  }
  ClosedLoopRate rate = streams.rate();
  rate.guessed = service.stats().speculation;
  rate.gaps_us = std::move(gaps.us);
  return rate;
}

}  // namespace gauntlet::engine::inline measure
