// A shard: token ids in blocks, each compressed by itself and on pages of its own, so that any can
// be read past the page cache and inflated alone. The index in front says where they are.
#pragma once
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "core/expected.h"
#include "core/random.h"
#include "core/storage/data_file.h"

namespace gauntlet {

struct ShardBlock {
  std::int64_t offset = 0;  // a multiple of kDirectBytes
  std::int64_t bytes = 0;   // compressed
  /// What has to be read past the page cache.
  std::int64_t padded_bytes() const {
    return (bytes + kDirectBytes - 1) / kDirectBytes * kDirectBytes;
  }
};

struct ShardIndex {
  std::int64_t block_tokens = 0;
  std::vector<ShardBlock> blocks;

  /// Of the largest block.
  std::int64_t most_padded_bytes() const;
};

/// Of a shard of so many blocks, in whole pages.
std::int64_t shard_index_bytes(std::int64_t blocks);
std::vector<unsigned char> write_shard_index(const ShardIndex& index);
/// From the beginning of a shard of `file_bytes`. Refuses one whose blocks lie outside of the file
/// or over one another, or cannot hold what they should.
Expected<ShardIndex> parse_shard_index(std::span<const unsigned char> bytes,
                                       std::int64_t file_bytes);

/// A shard of made-up text on a real disk, made when it is first read from: some phrases of eight
/// tokens in a random order. The fewer there are, the more of a block repeats what stood before in
/// it, and the smaller it comes out: 4,096 phrases leave 87% of blocks of 65,536 tokens, 256 half
/// of blocks of 4,096 tokens and a quarter of those of 16,384.
class TokenShard {
 public:
  static constexpr std::int64_t kUsualPhrases = 4096;
  TokenShard(std::int64_t blocks, std::int64_t block_tokens,
             std::int64_t num_phrases = kUsualPhrases);

  /// Throw a Fault that says why there is none.
  const DataFile& file();
  const ShardIndex& index();

  std::int64_t blocks() const { return blocks_; }
  std::int64_t block_tokens() const { return block_tokens_; }
  /// The tokens of a block, without reading it.
  void recompute(std::span<std::int32_t> out, std::int64_t block) const;

 private:
  void make();

  std::int64_t blocks_;
  std::int64_t block_tokens_;
  std::uint64_t num_phrases_;
  Random text_;
  std::once_flag made_;
  std::unique_ptr<DataFile> file_;
  ShardIndex index_;
};

}  // namespace gauntlet
