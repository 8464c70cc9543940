// Host memory that steps are sent from and read into: pinned, which the device copies by itself, or
// pageable, which the driver copies through a buffer of its own while the caller waits.
#pragma once
#include <vector>

#include "core/cuda/memory.h"
#include "engine/options.h"

namespace gauntlet::engine::cuda {

class HostBuffer {
 public:
  HostBuffer(std::int64_t bytes, HostMemory kind)
      : pinned_(kind == HostMemory::pinned ? bytes : 0),
        pageable_(static_cast<std::size_t>(kind == HostMemory::pageable ? bytes : 0)),
        data_(kind == HostMemory::pinned ? pinned_.data() : pageable_.data()) {}
  HostBuffer(const HostBuffer&) = delete;
  HostBuffer& operator=(const HostBuffer&) = delete;

  std::uint8_t* data() const { return data_; }

 private:
  PinnedMemory pinned_;
  std::vector<std::uint8_t> pageable_;
  std::uint8_t* data_;
};

}  // namespace gauntlet::engine::cuda
