// Any bytes as a shard of tokens: refused, or blocks within it, each of which is refused or
// inflated within its room.
#include <algorithm>
#include <cstdint>
#include <vector>

#include "core/storage/lz4_block.h"
#include "core/storage/token_shard.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace gauntlet;
  const std::span<const unsigned char> bytes{data, size};
  // Blocks seldom lie where a mutated index says, so the bytes are a block, too.
  std::vector<unsigned char> out(std::min<std::size_t>(64 * size, 1 << 20));
  decode_lz4_block(bytes, out);
  const auto index = parse_shard_index(bytes, static_cast<std::int64_t>(size));
  if (!index) return 0;
  for (const ShardBlock& block : index->blocks) {
    decode_lz4_block(bytes.subspan(static_cast<std::size_t>(block.offset),
                                   static_cast<std::size_t>(block.bytes)),
                     out);
  }
  return 0;
}
