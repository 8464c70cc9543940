// What the groups of one rank share: their channel, a time limit, and what it cost so far.
#pragma once
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "core/ranks/channel.h"
#include "core/ranks/group.h"

namespace gauntlet::ranks {

struct MessageShared {
  std::unique_ptr<Channel> channel;
  double timeout_s = 0;
  std::int64_t next_lane = 1;
  Traffic traffic = {};

  void send(int to, int lane, std::span<const std::byte> head, std::span<const std::byte> body) {
    traffic.sent_bytes += static_cast<std::int64_t>(body.size());
    ++traffic.messages;
    channel->send(to, lane, head, body);
  }
};

/// Counts the time until its end as waiting.
class WaitClock {
 public:
  using Clock = std::chrono::steady_clock;

  explicit WaitClock(MessageShared& shared) : shared_(shared) {}
  ~WaitClock() { shared_.traffic.waited_s += waited_s(); }
  WaitClock(const WaitClock&) = delete;
  WaitClock& operator=(const WaitClock&) = delete;

  double waited_s() const { return std::chrono::duration<double>(Clock::now() - begin_).count(); }

 private:
  MessageShared& shared_;
  const Clock::time_point begin_ = Clock::now();
};

}  // namespace gauntlet::ranks
