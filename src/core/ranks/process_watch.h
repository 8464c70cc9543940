// Which ranks of a job have ended, by their processes, as far as they run on this machine.
#pragma once
#include <sys/types.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/ranks/group.h"

namespace gauntlet::ranks {

class ProcessWatch {
 public:
  /// All ranks of the group call it. Ranks of other machines, of other PID namespaces and of this
  /// very process are not watched.
  static Expected<std::unique_ptr<ProcessWatch>> of(Group& group);
  ~ProcessWatch();
  ProcessWatch(const ProcessWatch&) = delete;
  ProcessWatch& operator=(const ProcessWatch&) = delete;

  struct Ended {
    int rank = 0;
    pid_t process = 0;
    std::string text() const;  // "its process 4711 is gone"
  };
  /// Those that have ended, in the order of ranks. Never waits.
  std::vector<Ended> ended() const;
  bool watches(int rank) const;
  /// Waits until that rank has ended, no longer than so long. False: it has not, or is not watched.
  bool wait_for(int rank, double seconds) const;

 private:
  struct Watched {
    Ended who;
    int handle = -1;
  };
  const Watched* find(int rank) const;
  explicit ProcessWatch(std::vector<Watched> watched) : watched_(std::move(watched)) {}

  std::vector<Watched> watched_;
};

}  // namespace gauntlet::ranks
