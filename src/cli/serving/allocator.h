// What the allocator keeps of memory that was freed. glibc raises its thresholds to the largest
// block it ever saw freed, up to 32 MiB, and then every thread's arena keeps twice as much for
// good; a server lives long, and one large body must not show in it for ever.
#pragma once

namespace gauntlet::cli {

/// Large blocks are mapped apart, and what is free at an arena's end goes back. Before there are
/// threads.
void return_freed_memory();

}  // namespace gauntlet::cli
