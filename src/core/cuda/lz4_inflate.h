// LZ4 blocks inflated on the device, a warp to a block: many blocks at once is what a GPU needs.
#pragma once
#include <cuda_runtime_api.h>

#include <cstdint>

namespace gauntlet {

/// Where a compressed block lies, and which block of the output it is.
struct Lz4Place {
  std::int64_t begin = 0;  // in the compressed bytes
  std::int64_t bytes = 0;
  std::int64_t block = 0;
};

/// Pointers that the device can follow.
struct Lz4Blocks {
  const unsigned char* compressed = nullptr;
  const Lz4Place* places = nullptr;  // [count]
  std::int64_t count = 0;
  unsigned char* out = nullptr;     // [blocks, block_bytes]
  std::int64_t* came_to = nullptr;  // [blocks]: bytes of each, or kLz4Corrupt
  std::int64_t block_bytes = 0;
};

/// Launches it. A block that is damaged, or longer than block_bytes, is refused, and nothing is
/// read or written outside of it.
void inflate_lz4_blocks(const Lz4Blocks& blocks, cudaStream_t stream);

}  // namespace gauntlet
