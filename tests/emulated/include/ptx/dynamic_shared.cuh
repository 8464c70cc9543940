// src/ptx/dynamic_shared.cuh of an emulated GPU.
#pragma once
#include "tests/emulated/cluster.h"

namespace gauntlet::ptx {

template <class T>
T& dynamic_shared() {
  return *static_cast<T*>(emulated::Cluster::current().shared());
}

}  // namespace gauntlet::ptx
