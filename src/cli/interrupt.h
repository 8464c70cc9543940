// Ctrl-C as a flag that long work looks at between its steps.
#pragma once
#include <atomic>

namespace gauntlet::cli {

/// From the first call on, SIGINT and SIGTERM set the flag instead of ending the program. A caller
/// that goes on afterwards clears it.
std::atomic<bool>& watch_interrupt();

}  // namespace gauntlet::cli
