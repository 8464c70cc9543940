// Signals as a flag that long work looks at between its steps.
#pragma once
#include <atomic>
#include <initializer_list>

namespace gauntlet::cli {

/// From now on these signals set the flag instead of ending the program. A caller that goes on
/// afterwards clears it.
std::atomic<bool>& watch_signals(std::initializer_list<int> signals);

}  // namespace gauntlet::cli
