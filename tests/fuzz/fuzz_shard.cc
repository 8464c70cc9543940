// Any bytes as a shard of tokens: refused, or blocks within it, each of which is refused or
// inflated within its room, to the same bytes by the lanes of a warp as by one.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <vector>

#include "core/storage/lz4_block.h"
#include "core/storage/lz4_samples.h"
#include "core/storage/token_shard.h"

namespace {

using namespace gauntlet;

/// `room` holds both outputs.
void inflate_both_ways(std::span<const unsigned char> block, std::vector<unsigned char>& room) {
  const std::size_t half = room.size() / 2;
  const std::span<unsigned char> one{room.data(), half}, lanes{room.data() + half, half};
  std::ranges::fill(room, static_cast<unsigned char>(0));
  const std::int64_t count = decode_lz4_block(block, one);
  if (decode_lz4_block_by_lanes(block, lanes, LaneOrder::backwards) != count) std::abort();
  if (!std::ranges::equal(one, lanes)) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::span<const unsigned char> bytes{data, size};
  // Blocks seldom lie where a mutated index says, so the bytes are a block, too.
  std::vector<unsigned char> room(2 * std::min<std::size_t>(64 * size, 1 << 19));
  inflate_both_ways(bytes, room);
  const auto index = parse_shard_index(bytes, static_cast<std::int64_t>(size));
  if (!index) return 0;
  for (const ShardBlock& block : index->blocks) {
    inflate_both_ways(bytes.subspan(static_cast<std::size_t>(block.offset),
                                    static_cast<std::size_t>(block.bytes)),
                      room);
  }
  return 0;
}
