// Processes that a side started.
#pragma once
#include <sys/types.h>

#include <vector>

namespace gauntlet::lab::inline measure {

/// From now on a grandchild whose parent ended becomes this process's child, and is seen.
void adopt_orphans();

/// Any child, alive or not yet waited for, also one that was cloned to end without a signal.
bool has_child_process();

/// A process that this one cloned into its parent's care (CLONE_PARENT): there when this process
/// leads a session, as workers do, and its parent has a younger child.
bool has_younger_sibling();

/// Whether a thread runs or waits for a CPU, rather than sleeps.
bool is_runnable(pid_t process, pid_t thread);

/// This process's children and theirs; empty where the kernel does not list them.
std::vector<pid_t> descendants();

struct ProcessUse {
  double cpu_ns = 0;
  int running = 0;  // threads that are not asleep right now
};
/// Of the descendants together, those included that this process waited for.
ProcessUse use_of_descendants();

}  // namespace gauntlet::lab::inline measure
