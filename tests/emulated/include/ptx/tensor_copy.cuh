// src/ptx/tensor_copy.cuh of an emulated GPU.
#pragma once
#include <cuda.h>

#include "ptx/address.cuh"

namespace gauntlet::ptx {

struct TileOrigin {
  std::int32_t column;
  std::int32_t row;
};

inline void tensor_load_2d(void* shared, const CUtensorMap& map, TileOrigin origin,
                           std::uint64_t& barrier) {
  emulated::Cluster::current().copy(1, shared_address(shared), map, origin.column, origin.row,
                                    shared_address(&barrier));
}

}  // namespace gauntlet::ptx
