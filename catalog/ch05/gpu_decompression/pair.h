// What does it buy to send data over the link compressed, and to inflate it behind?
#pragma once
#include <cstdint>
#include <memory>

#include "catalog/ch05/gpu_decompression/packed.h"

namespace gauntlet::ch05::gpu_decompression {

struct Params {
  std::shared_ptr<Packed> packed;
  const std::int32_t* pick;  // [blocks], in pinned host memory: which blocks of the shard
  std::int32_t* out;         // [blocks, block_tokens], on the device
  std::int64_t* came_to;  // [blocks], in pinned host memory: bytes of each, kLz4Corrupt if refused
  std::int64_t blocks;
  std::int64_t block_tokens;
};

}  // namespace gauntlet::ch05::gpu_decompression
