// IoRing: many reads in flight by one thread, through liburing. A build without liburing has the
// class, too, and says so when a ring is asked for.
#pragma once
#include <cstdint>
#include <memory>

#include "core/expected.h"

namespace gauntlet {

struct RingRead {
  int file = -1;
  void* to = nullptr;
  std::int64_t bytes = 0;
  std::int64_t offset = 0;
  std::uint64_t tag = 0;  // comes back with the completion
};

struct RingCompletion {
  std::uint64_t tag = 0;
  std::int64_t result = 0;  // bytes read, or a negated errno
};

class IoRing {
 public:
  /// `depth` entries, a power of two.
  static Expected<std::unique_ptr<IoRing>> open(unsigned depth);
  /// Why this build has no rings; no error where it has them.
  static Expected<void> compiled();
  ~IoRing();
  IoRing(const IoRing&) = delete;
  IoRing& operator=(const IoRing&) = delete;

  /// Puts a read into the submission queue; false when it is full.
  bool prepare(const RingRead& read);
  /// Hands over what was prepared and waits until `least` completions are there.
  Expected<void> submit_and_wait(unsigned least);
  /// The next completion; false when there is none.
  bool take(RingCompletion& completion);

  /// How many completions the kernel has written since the ring was opened: its own end of the
  /// completion queue, which nobody but the kernel moves.
  std::uint64_t completions();

 private:
  struct State;
  explicit IoRing(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace gauntlet
