// Channel: messages from rank to rank, whatever carries them. A transport implements this alone;
// the collectives are made of it once (message_group.h).
#pragma once
#include <chrono>
#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace gauntlet::ranks {

/// What came from a rank. Messages of a sender arrive in the order they were sent, lane by lane.
struct Arrival {
  enum class State { nothing, message, lost, broken } state = State::nothing;
  std::vector<std::byte> message;
  std::string why;  // lost: how the rank ended, where known; broken: the channel's own failure
};

/// One rank's end. Used by one thread at a time.
class Channel {
 public:
  using Seconds = std::chrono::duration<double>;

  virtual ~Channel() = default;
  virtual int rank() const = 0;
  virtual int size() const = 0;
  virtual std::string transport() const = 0;

  /// Takes a copy of both, which arrive as one message. Never waits.
  virtual void send(int to, int lane, std::span<const std::byte> head,
                    std::span<const std::byte> body) = 0;
  /// The next message of a rank. What a rank sent before it was lost still arrives.
  virtual Arrival poll(int from, int lane) = 0;
  /// Whether all that was sent in a lane needs nothing more of this rank.
  virtual bool flushed(int lane) = 0;
  /// Those that have not taken all that was sent in it, in their order; nobody where it is always
  /// taken.
  virtual std::vector<int> late_takers(int /*lane*/) const { return {}; }
  /// Passes a moment after a poll that found nothing, no longer than `left`; `waited` so far.
  virtual void pause(Seconds waited, Seconds left) = 0;

  /// The first failure of any of this rank's groups; nothing works after it.
  virtual void break_off(const std::string& reason) = 0;
  virtual std::optional<std::string> broken() = 0;
  /// All ranks have come to their end: the transport may be taken down in good order.
  virtual void all_have_come() {}
};

}  // namespace gauntlet::ranks
