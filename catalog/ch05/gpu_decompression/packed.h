// The shard's compressed blocks in host memory, as a reader of the disk would leave them.
#pragma once
#include <cstring>
#include <span>

#include "catalog/ch05/gpu_decompression/pair.h"
#include "core/check.h"
#include "core/os/pages.h"

namespace gauntlet::ch05::gpu_decompression {

class Packed {
 public:
  explicit Packed(TokenShard& shard) : shard_(shard), bytes_(shard.file().bytes()) {
    const std::span<unsigned char> all{bytes_.data(),
                                       static_cast<std::size_t>(shard.file().bytes())};
    check(bool(read_fully(shard.file().direct(), all, 0)), "a shard can be read");
  }

  std::span<const unsigned char> block(std::int32_t number) const {
    const ShardBlock& block = shard_.index().blocks[static_cast<std::size_t>(number)];
    return {bytes_.data() + block.offset, static_cast<std::size_t>(block.bytes)};
  }
  /// Of the largest block.
  std::int64_t most_bytes() const { return shard_.index().most_padded_bytes(); }

 private:
  TokenShard& shard_;
  HugePages bytes_;
};

}  // namespace gauntlet::ch05::gpu_decompression
