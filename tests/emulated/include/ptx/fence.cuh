// src/ptx/fence.cuh of an emulated GPU.
#pragma once
#include "tests/emulated/cluster.h"

namespace gauntlet::ptx {

inline void fence_mbarrier_init() { emulated::Cluster::current().publish_barriers(); }

}  // namespace gauntlet::ptx
