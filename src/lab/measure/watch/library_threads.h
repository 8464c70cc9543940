// LibraryThreads: the threads that a library, such as a GPU's driver, began before any side was
// made.
#pragma once
#include <sys/types.h>

#include <memory>
#include <vector>

#include "lab/measure/watch/known_threads.h"

namespace gauntlet::lab::inline measure {

/// A driver begins threads when it is first asked for something: a context, managed memory. They
/// use CPU time now and then, whatever a side does. As long as no side's code has run, every new
/// thread is the library's; what begins later may work for a side, and stays unknown.
class LibraryThreads {
 public:
  /// What runs now is not the library's.
  explicit LibraryThreads(std::shared_ptr<KnownThreads> known);

  /// Knows what began since. Does nothing once it was closed.
  void adopt();
  /// Before a side's code runs for the first time: adopts once more, and never again.
  void close();

 private:
  std::shared_ptr<KnownThreads> known_;
  std::vector<pid_t> before_;
  std::vector<KnownThreads::Lease> leases_;
  bool closed_ = false;
};

}  // namespace gauntlet::lab::inline measure
