// Group: the ranks of one job, as one of them sees it, whatever carries their bytes.
#pragma once
#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include "core/expected.h"

namespace gauntlet::ranks {

struct GroupOptions {
  /// How long a rank waits for the others in one call before it gives the group up.
  double timeout_s = 30;
};

/// All ranks make the same calls in the same order, each from one thread at a time. An error says
/// which rank is missing where that is known; after one, every further call fails with it.
class Group {
 public:
  virtual ~Group() = default;
  virtual int rank() const = 0;
  virtual int size() const = 0;
  virtual std::string transport() const = 0;  // "threads", "mpi", "alone"

  virtual Expected<void> barrier() = 0;
  /// Rank `root`'s bytes become everyone's; all pass as many.
  virtual Expected<void> broadcast(std::span<std::byte> bytes, int root) = 0;
  /// Everyone's bytes, in the order of ranks; `all` holds size() times as many as `own`.
  virtual Expected<void> all_gather(std::span<const std::byte> own, std::span<std::byte> all) = 0;
};

/// A group of one, which waits for nobody.
std::unique_ptr<Group> alone();

/// The largest of all ranks' values; NaN where any of them is.
Expected<double> all_max(Group& group, double own);
Expected<bool> all_true(Group& group, bool own);

/// Everyone gets rank 0's value.
template <class T>
  requires std::is_trivially_copyable_v<T>
Expected<T> agree(Group& group, T own) {
  const auto sent = group.broadcast(std::as_writable_bytes(std::span(&own, 1)), 0);
  if (!sent) return sent.error();
  return own;
}
/// The texts may differ in length.
Expected<std::string> agree(Group& group, std::string own);
/// Everyone's text, in the order of ranks; they may differ in length.
Expected<std::vector<std::string>> gather(Group& group, const std::string& own);

}  // namespace gauntlet::ranks
