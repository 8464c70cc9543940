// Ranks as threads of one process: for tests, and where there is no MPI.
#pragma once
#include <functional>

#include "core/ranks/group.h"

namespace gauntlet::ranks {

/// Calls `body` on `ranks` new threads at once, each with its view of the group, and returns when
/// all have ended. Each thread may use every CPU of the process; a body that wants one calls
/// pin_this_thread().
///
/// A body that returns an error or throws, or that returns while others wait for it, makes the
/// others' calls fail at once; one that does not come makes them fail at the time limit. The error
/// is that of the first rank that failed. A body that never returns keeps this from returning: a
/// thread cannot be ended from outside, only its process can.
Expected<void> run_threads(int ranks, const std::function<Expected<void>(Group&)>& body,
                           const GroupOptions& options = {});

}  // namespace gauntlet::ranks
