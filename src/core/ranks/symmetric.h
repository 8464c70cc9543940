// Windows in memory that all ranks of one host see: a put writes where its target reads.
#pragma once
#include <memory>

#include "core/ranks/group.h"

namespace gauntlet::ranks {

/// A window like Group::open_window()'s, but without messages: a put is a copy into the target's
/// memory and then a counter of its own, in that order for whoever sees the counter. Two puts to
/// one target are two copies: who writes what is being read is for the ranks to agree on. All call
/// it; an error where they share no memory (ranks on several hosts).
Expected<std::unique_ptr<Window>> open_symmetric_window(Group& group, std::size_t bytes, int flags,
                                                        const GroupOptions& options = {});

}  // namespace gauntlet::ranks
