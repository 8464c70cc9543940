// cp.async.bulk.tensor: one thread moves a whole tile that a tensor map describes (sm_90).
#pragma once
#include <cuda.h>

#include "ptx/address.cuh"

namespace gauntlet::ptx {

/// Coordinates of a tile's first element, in elements; negative or too large ones lie outside the
/// tensor.
struct TileOrigin {
  std::int32_t column;
  std::int32_t row;
};

/// Brings the map itself near, so that the first copy through it does not wait for it.
__device__ __forceinline__ void prefetch_tensor_map(const CUtensorMap& map) {
  asm volatile("prefetch.tensormap [%0];" ::"l"(&map) : "memory");
}

/// Global to shared; the box's bytes count towards the barrier's phase, outside elements arrive as
/// zero and are counted too. The shared address is a multiple of 128.
__device__ __forceinline__ void tensor_load_2d(void* shared, const CUtensorMap& map,
                                               TileOrigin origin, std::uint64_t& barrier) {
  asm volatile(
      "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes"
      " [%0], [%1, {%2, %3}], [%4];" ::"r"(shared_address(shared)),
      "l"(&map), "r"(origin.column), "r"(origin.row), "r"(shared_address(&barrier))
      : "memory");
}

/// Shared to global, in this thread's open bulk group; elements outside the tensor are not written.
__device__ __forceinline__ void tensor_store_2d(const CUtensorMap& map, TileOrigin origin,
                                                const void* shared) {
  asm volatile(
      "cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group [%0, {%1, %2}], [%3];" ::"l"(
          &map),
      "r"(origin.column), "r"(origin.row), "r"(shared_address(shared))
      : "memory");
}

}  // namespace gauntlet::ptx
