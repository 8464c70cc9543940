// Group: the ranks of one job, as one of them sees it, whatever carries their bytes.
#pragma once
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include "core/expected.h"

namespace gauntlet::ranks {

class Channel;

struct GroupOptions {
  /// How long a rank waits for the others in one call before it gives the group up.
  double timeout_s = 30;
};

/// What a rank has sent and waited for in all its groups of one job.
struct Traffic {
  std::int64_t sent_bytes = 0;  // without what goes in front of each message
  std::int64_t messages = 0;
  double waited_s = 0;  // for messages of others, and for its own to be taken
};

/// Of a wait without a time limit.
inline constexpr double kForever = std::numeric_limits<double>::infinity();

/// Parts for each rank and from each, in the order of ranks, one behind the other; sizes in bytes.
struct Exchange {
  std::span<const std::byte> sent;
  std::span<const std::size_t> sent_sizes;
  std::span<std::byte> received;
  std::span<const std::size_t> received_sizes;
};

/// Memory of each rank that the others write into, with counters that tell it so. A put raises one
/// counter of its target by one, after its bytes; they are seen by the target when it waits.
class Window {
 public:
  virtual ~Window() = default;
  virtual std::span<std::byte> bytes() = 0;  // this rank's own
  virtual Expected<void> put(int to, std::size_t offset, std::span<const std::byte> bytes,
                             int flag) = 0;
  /// Until this rank's counter has been raised so often since the window was opened.
  virtual Expected<void> wait(int flag, std::uint64_t count) = 0;
};

/// All ranks make the same calls in the same order, each from one thread at a time. An error says
/// which rank is missing, or called something else, where that is known; after one, every further
/// call fails with it. After a sum all ranks hold the same bits: terms are added in the order of
/// ranks, whatever their number and the message sizes.
class Group {
 public:
  virtual ~Group() = default;
  virtual int rank() const = 0;
  virtual int size() const = 0;
  virtual std::string transport() const = 0;  // "threads", "mpi", "alone"
  virtual Traffic traffic() const = 0;
  /// The time limit of this rank's calls from now on, in all groups of the job.
  virtual void set_timeout(double seconds) = 0;

  virtual Expected<void> barrier() = 0;
  /// Rank `root`'s bytes become everyone's; all pass as many.
  virtual Expected<void> broadcast(std::span<std::byte> bytes, int root) = 0;
  /// Everyone's bytes, in the order of ranks; `all` holds size() times as many as `own`.
  virtual Expected<void> all_gather(std::span<const std::byte> own, std::span<std::byte> all) = 0;
  /// The same with as many of each rank as `sizes` says, everywhere alike.
  virtual Expected<void> all_gather(std::span<const std::byte> own,
                                    std::span<const std::size_t> sizes,
                                    std::span<std::byte> all) = 0;
  virtual Expected<void> all_to_all(const Exchange& exchange) = 0;
  /// Every rank's numbers become their sum.
  virtual Expected<void> all_sum(std::span<float> numbers) = 0;
  virtual Expected<void> all_sum(std::span<double> numbers) = 0;
  /// Of the sum, rank r gets counts[r] numbers behind those of the ranks before it.
  virtual Expected<void> reduce_scatter(std::span<const float> all,
                                        std::span<const std::size_t> counts,
                                        std::span<float> own) = 0;
  /// To one rank, which receives as many. Does not wait for it to do so.
  virtual Expected<void> send(int to, std::span<const std::byte> bytes) = 0;
  virtual Expected<void> receive(int from, std::span<std::byte> bytes) = 0;
  /// What that rank sends next, as long as it is, whenever it comes: for a rank that waits for
  /// work. The only call without a time limit where none is given; a lost rank still ends it.
  virtual Expected<std::vector<std::byte>> receive_any(int from, double limit_s = kForever) = 0;
  /// All call it; each rank says how much memory it opens to the others.
  virtual Expected<std::unique_ptr<Window>> open_window(std::size_t bytes, int flags) = 0;
  /// All call it, with as many lanes: messages of their own between these ranks, beside the calls
  /// of the group and by the same transport, for what is made of messages elsewhere (link.h).
  virtual Expected<std::unique_ptr<Channel>> open_channel(int lanes) = 0;
  /// The ranks that say the same colour, in their order, as a group of their own. All call it.
  virtual Expected<std::unique_ptr<Group>> split(int colour) = 0;
  /// Until all that send() sent needs nothing more of this rank: before it does what does not move
  /// messages on and may wait for their receivers.
  virtual Expected<void> flush() = 0;
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
