// Messages of MPI from and to memory as it lies, without a group's copies: a GPU's memory, where
// MPI itself reads and writes it.
#pragma once
#include <cstddef>
#include <memory>

#include "core/expected.h"

namespace gauntlet::ranks {

/// For the thread that joined an MPI job, as long as that lasts. Beside the calls of a group: its
/// messages are told apart.
class MpiExchange {
 public:
  static Expected<std::unique_ptr<MpiExchange>> find();
  virtual ~MpiExchange() = default;

  /// Whether this MPI takes addresses of a GPU's memory; the error says how it would.
  virtual Expected<void> takes_device_memory() const = 0;

  /// Starts to send to one rank and to receive as many bytes from another. What was started before
  /// may still be under way; messages between two ranks keep their order.
  virtual Expected<void> start(int to, const void* sent, int from, void* received,
                               std::size_t bytes) = 0;
  /// Until the oldest exchange that was started is over.
  virtual Expected<void> finish(double timeout_s = 30) = 0;
};

}  // namespace gauntlet::ranks
