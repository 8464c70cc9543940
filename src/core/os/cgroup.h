// The limits of the control group this process is in, and of those above it: what a container may
// really use.
#pragma once
#include <cstdint>
#include <optional>

#include "core/os/system_files.h"

namespace gauntlet {

struct CgroupLimits {
  std::optional<std::int64_t> memory_bytes;  // the tightest limit; nothing when unlimited
  std::optional<std::int64_t>
      memory_used_bytes;               // in the group with that limit, less its file cache
  std::optional<double> cpu_cores;     // quota over period, the tightest
  std::int64_t throttled_periods = 0;  // periods in which that quota stopped the group
};

/// Version 1 and version 2 hierarchies.
CgroupLimits read_cgroup_limits(const SystemFiles& files);

}  // namespace gauntlet
