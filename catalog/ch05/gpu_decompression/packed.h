// A shard's compressed blocks in host memory, as a reader of the disk would leave them: read once,
// by the first side that is made, and shared by all sets of buffers.
#pragma once
#include <memory>
#include <mutex>
#include <span>

#include "core/check.h"
#include "core/os/pages.h"
#include "core/storage/token_shard.h"

namespace gauntlet::ch05::gpu_decompression {

class Packed {
 public:
  Packed(std::int64_t blocks, std::int64_t block_tokens, std::int64_t num_phrases)
      : shard_(blocks, block_tokens, num_phrases) {}

  void load() {
    std::call_once(loaded_, [&] {
      bytes_ = std::make_unique<HugePages>(shard_.file().bytes());
      const std::span<unsigned char> all{bytes_->data(),
                                         static_cast<std::size_t>(shard_.file().bytes())};
      if (const auto read = read_fully(shard_.file().direct(), all, 0); !read) {
        fail(read.error().message);
      }
    });
  }
  /// Once it is loaded.
  std::span<const unsigned char> block(std::int32_t number) {
    const ShardBlock& block = shard_.index().blocks[static_cast<std::size_t>(number)];
    return {bytes_->data() + block.offset, static_cast<std::size_t>(block.bytes)};
  }
  /// Of the largest block.
  std::int64_t most_bytes() { return shard_.index().most_padded_bytes(); }
  const TokenShard& shard() const { return shard_; }

 private:
  TokenShard shard_;
  std::once_flag loaded_;
  std::unique_ptr<HugePages> bytes_;
};

}  // namespace gauntlet::ch05::gpu_decompression
