// Processes that a side started and left behind.
#pragma once

namespace gauntlet::lab::inline measure {

/// From now on a grandchild whose parent ended becomes this process's child, and is seen.
void adopt_orphans();
/// Any child, alive or not yet waited for.
bool has_child_process();

}  // namespace gauntlet::lab::inline measure
