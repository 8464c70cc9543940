// src/ptx/address.cuh of an emulated GPU.
#pragma once
#include <cstdint>

#include "tests/emulated/cluster.h"

namespace gauntlet::ptx {

inline std::uint32_t shared_address(const void* pointer) {
  return emulated::Cluster::current().shared_address(pointer);
}

}  // namespace gauntlet::ptx
