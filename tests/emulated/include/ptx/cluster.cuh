// src/ptx/cluster.cuh of an emulated GPU.
#pragma once
#include "ptx/address.cuh"

namespace gauntlet::ptx {

inline std::uint32_t cluster_rank() { return emulated::Cluster::current().rank(); }
inline void cluster_arrive() { emulated::Cluster::current().arrive_at_cluster(); }
inline void cluster_wait() { emulated::Cluster::current().wait_for_cluster(); }

inline std::uint32_t map_shared(std::uint32_t address, std::uint32_t rank) {
  return (address & 0xFFFFFF) | (rank + 1) << 24;
}

}  // namespace gauntlet::ptx
