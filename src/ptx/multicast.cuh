// Tensor copies that fill the shared memory of several blocks of a cluster, and arrivals at another
// block's barrier (sm_90).
#pragma once
#include <cuda.h>

#include "ptx/address.cuh"
#include "ptx/tensor_copy.cuh"

namespace gauntlet::ptx {

/// tensor_load_2d() into the same place of every block whose bit is set in `blocks`; the bytes
/// count towards the barrier at the same place of each of them.
__device__ __forceinline__ void tensor_load_2d_multicast(void* shared, const CUtensorMap& map,
                                                         TileOrigin origin, std::uint64_t& barrier,
                                                         std::uint16_t blocks) {
  asm volatile(
      "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes"
      ".multicast::cluster [%0], [%1, {%2, %3}], [%4], %5;" ::"r"(shared_address(shared)),
      "l"(&map), "r"(origin.column), "r"(origin.row), "r"(shared_address(&barrier)), "h"(blocks)
      : "memory");
}

/// Arrives at the barrier that block `rank` of the cluster has where this block has its own. It
/// counts and orders nothing, which is enough where a stage is given back: what was read of it has
/// been read. Releasing what the thread wrote to the cluster would take hundreds of cycles each
/// time.
__device__ __forceinline__ void mbarrier_arrive_at(std::uint64_t& barrier, std::uint32_t rank) {
  asm volatile(
      "{\n"
      "  .reg .b32 remote;\n"
      "  mapa.shared::cluster.u32 remote, %0, %1;\n"
      "  mbarrier.arrive.relaxed.cluster.shared::cluster.b64 _, [remote];\n"
      "}\n" ::"r"(shared_address(&barrier)),
      "r"(rank)
      : "memory");
}

}  // namespace gauntlet::ptx
