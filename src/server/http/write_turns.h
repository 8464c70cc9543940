// When may a stream be written again? A while after it was, and at the same moments as others:
// whoever waits for one of them then wakes up for all.
#pragma once
#include <chrono>

namespace gauntlet::server::inline http {

class WriteTurns {
 public:
  using Clock = std::chrono::steady_clock;

  /// From a turn to the next; 0: the next is now.
  explicit WriteTurns(std::chrono::nanoseconds interval)
      : interval_(interval), grain_(interval / kGrains) {}

  /// After what was due at `turn` has been written. It counts from then, so that who is on time
  /// keeps time; from now where nothing was ready then.
  Clock::time_point next(Clock::time_point turn, Clock::time_point now) const {
    if (grain_.count() <= 0) return now + interval_;
    const auto since = (now - turn < grain_ ? turn : now).time_since_epoch() + interval_;
    return Clock::time_point((since + grain_ - Clock::duration(1)) / grain_ * grain_);
  }

 private:
  /// Nobody waits for company longer than an eighth of what all wait anyway.
  static constexpr int kGrains = 8;

  const Clock::duration interval_;
  const Clock::duration grain_;
};

}  // namespace gauntlet::server::inline http
