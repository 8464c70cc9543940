// From compressed shards on a disk to batches of tokens: what does each part of the way cost, and
// what may go on at the same time?
#pragma once
#include <cstdint>
#include <memory>
#include <span>

#include "core/check.h"
#include "core/storage/lz4_library.h"
#include "core/storage/token_shard.h"

namespace gauntlet::labs::input_pipeline {

struct Params {
  std::shared_ptr<TokenShard> shard;
  const std::int32_t* pick;  // [blocks], in host memory: which blocks of the shard make the batch
  std::int32_t* out;         // [blocks, block_tokens], on the device if there is one
  std::int64_t* came_to;     // [blocks], in host memory: bytes of each, kLz4Corrupt if refused
  std::int64_t blocks;
  std::int64_t block_tokens;

  std::int64_t block_bytes() const { return 4 * block_tokens; }
};

/// Block `i` of the batch as it lies in the shard.
inline const ShardBlock& block_of(const Params& p, std::int64_t i) {
  return p.shard->index().blocks[static_cast<std::size_t>(p.pick[i])];
}

/// Inflates block `i` of the batch by liblz4 to where its tokens belong. A block that is damaged,
/// or another length, is a fault.
inline void inflate(const Params& p, std::int64_t i, const unsigned char* compressed,
                    void* tokens) {
  const auto bytes = static_cast<std::size_t>(p.block_bytes());
  const std::int64_t came_to =
      inflate_lz4_block({compressed, static_cast<std::size_t>(block_of(p, i).bytes)},
                        {static_cast<unsigned char*>(tokens), bytes});
  p.came_to[i] = came_to;
  check(came_to == p.block_bytes(), "a block of the shard is damaged");
}

}  // namespace gauntlet::labs::input_pipeline
