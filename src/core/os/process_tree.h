// Which processes belong to a child: those of its session and those below it, however they group
// themselves. mpirun gives each rank a process group of its own but leaves it in its session.
#pragma once
#include <sys/types.h>

#include <cstdint>
#include <vector>

#include "core/os/system_files.h"

namespace gauntlet {

struct ProcessEntry {
  pid_t pid = 0;
  pid_t parent = 0;
  pid_t session = 0;
  char state = '?';              // as in /proc: R, S, D, Z, T ...
  std::int64_t start_ticks = 0;  // since boot: tells a process from a later one of the same number
  std::int64_t resident_bytes = 0;

  /// It has ended, and its parent has not yet asked how.
  bool is_zombie() const { return state == 'Z' || state == 'X'; }
};

/// Those that /proc shows now; one that ends meanwhile is left out.
std::vector<ProcessEntry> read_processes(const SystemFiles& files);

/// Of `all`, the members of the session that `leader` leads, those of `seen` that still exist, and
/// all descendants of `leader` and of those; `leader` itself is among them while it exists. `seen`
/// is what an earlier call returned: a process whose parent has ended since is still found.
std::vector<ProcessEntry> process_tree(pid_t leader, const std::vector<ProcessEntry>& all,
                                       const std::vector<ProcessEntry>& seen = {});

}  // namespace gauntlet
