// Collectives that a rank starts, and waits for when it needs them: what overlaps with computing.
#pragma once
#include <cstddef>
#include <memory>
#include <span>

#include "core/ranks/group.h"

namespace gauntlet::ranks {

/// One collective under way. Its memory must stay until it is done; destroyed before, it is left to
/// its Starter, which then must not outlive the memory.
class Started {
 public:
  virtual ~Started() = default;
  /// Takes what has come, sends what follows from it, and never waits. Whether it is done.
  virtual Expected<bool> test() = 0;
  /// Until it is done, for no longer than the group's time limit.
  virtual Expected<void> wait() = 0;
};

/// Starts collectives of a group, beside the group's own calls. All ranks start the same ones in
/// the same order, from the thread that uses the group. There is no thread behind it: what is under
/// way moves on in calls of this and of what it started, all of it in each.
class Starter {
 public:
  virtual ~Starter() = default;
  /// Every rank's numbers become their sum, terms added in the order of ranks: all_sum()'s bits.
  virtual Expected<std::shared_ptr<Started>> all_sum(std::span<float> numbers) = 0;
  /// Everyone's bytes, in the order of ranks; `all` holds size() times as many as `own`.
  virtual Expected<std::shared_ptr<Started>> all_gather(std::span<const std::byte> own,
                                                        std::span<std::byte> all) = 0;
  /// Moves on all that is under way.
  virtual Expected<void> progress() = 0;
};

/// All ranks of the group call it. The group must outlive it.
Expected<std::unique_ptr<Starter>> make_starter(Group& group, const GroupOptions& options = {});

}  // namespace gauntlet::ranks
