// Several ranks as a backend: each rank has a CPU, buffers and sides of its own, and all of them
// decide alike, so that one measurement comes out.
#pragma once
#include <memory>

#include "core/ranks/group.h"
#include "lab/measure/backend.h"

namespace gauntlet::lab::inline measure {

/// A rank's view; the group must outlive it. A lost rank becomes a Fault that names it. Ranks that
/// are threads of one process pass the same `known`: each other's threads are no work of a side's.
std::unique_ptr<Backend> make_ranks_backend(ranks::Group& group,
                                            std::shared_ptr<KnownThreads> known = nullptr);

}  // namespace gauntlet::lab::inline measure
