// What launches need to know of a GPU: asked once for each, and never between two products.
#pragma once
#include <cstddef>

namespace gauntlet::kernels::cuda {

struct DeviceFacts {
  int num_sms = 0;
  std::size_t most_shared_bytes = 0;  // that a block may have, if it asks
  bool has_bulk_copies = false;       // it runs what was compiled for sm_90a
};

/// Of the current device.
const DeviceFacts& device_facts();

}  // namespace gauntlet::kernels::cuda
