// What kernels are measured beside: a launch that does nothing, and reads that push everything
// else out of the L2.
#pragma once
#include <cstdint>

#include "kernels/cuda/launch_how.h"

namespace gauntlet::bench {

/// One block that waits for the kernel in front, as every kernel of the engine does, and ends.
void launch_nothing(const kernels::cuda::Launch& how);

/// Reads `bytes` (a multiple of 16): they lie in the L2 afterwards, clean, so that what is timed
/// next has nothing of others to write back.
void read_through(const void* data, std::int64_t bytes, std::uint32_t* sink,
                  const kernels::cuda::Launch& how);

}  // namespace gauntlet::bench
