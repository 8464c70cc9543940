#include "core/storage/token_shard.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <random>

#include "core/os/pages.h"
#include "core/os/threads.h"
#include "core/storage/lz4_library.h"

namespace gauntlet {
namespace {

// "GTSHARD1", as the eight bytes come.
constexpr std::uint64_t kShardMagic = 0x3144524148535447u;
constexpr std::int64_t kMostBlocks = 1 << 24;
constexpr std::int64_t kMostBlockTokens = 1 << 24;
constexpr std::int64_t kPhraseTokens = 8;
constexpr std::uint64_t kVocabulary = 50'000;
constexpr std::uint64_t kPhraseSeeds = std::uint64_t{1} << 40;  // past those of the order

struct Header {
  std::uint64_t magic = 0;
  std::uint64_t blocks = 0;
  std::uint64_t block_tokens = 0;
};
struct Entry {
  std::uint64_t offset = 0;
  std::uint64_t bytes = 0;
};

std::int64_t whole_pages_of(std::int64_t bytes) {
  return (bytes + kDirectBytes - 1) / kDirectBytes * kDirectBytes;
}

/// What LZ4 may make of so many bytes that do not compress.
std::uint64_t most_compressed(std::uint64_t raw) { return raw + raw / 255 + 16; }

Expected<ShardIndex> damaged(const std::string& what) {
  return Error{fmt::format("not a shard that can be read: {}", what)};
}

std::uint64_t shard_seed() {
  std::random_device device;
  return (std::uint64_t{device()} << 32) | device();
}

}  // namespace

std::int64_t ShardIndex::most_padded_bytes() const {
  std::int64_t most = 0;
  for (const ShardBlock& block : blocks) most = std::max(most, block.padded_bytes());
  return most;
}

std::int64_t shard_index_bytes(std::int64_t blocks) {
  return whole_pages_of(static_cast<std::int64_t>(sizeof(Header)) +
                        blocks * static_cast<std::int64_t>(sizeof(Entry)));
}

std::vector<unsigned char> write_shard_index(const ShardIndex& index) {
  const auto count = static_cast<std::int64_t>(index.blocks.size());
  std::vector<unsigned char> bytes(static_cast<std::size_t>(shard_index_bytes(count)));
  const Header header{kShardMagic, static_cast<std::uint64_t>(count),
                      static_cast<std::uint64_t>(index.block_tokens)};
  std::memcpy(bytes.data(), &header, sizeof(header));
  unsigned char* to = bytes.data() + sizeof(header);
  for (const ShardBlock& block : index.blocks) {
    const Entry entry{static_cast<std::uint64_t>(block.offset),
                      static_cast<std::uint64_t>(block.bytes)};
    std::memcpy(to, &entry, sizeof(entry));
    to += sizeof(entry);
  }
  return bytes;
}

Expected<ShardIndex> parse_shard_index(std::span<const unsigned char> bytes,
                                       std::int64_t file_bytes) {
  Header header;
  if (bytes.size() < sizeof(header)) return damaged("it ends within its header");
  std::memcpy(&header, bytes.data(), sizeof(header));
  if (header.magic != kShardMagic) return damaged("it does not begin as one");
  if (header.blocks > kMostBlocks) return damaged(fmt::format("{} blocks", header.blocks));
  if (header.block_tokens == 0 || header.block_tokens > kMostBlockTokens) {
    return damaged(fmt::format("{} tokens in a block", header.block_tokens));
  }
  const auto count = static_cast<std::int64_t>(header.blocks);
  const std::int64_t index_bytes = shard_index_bytes(count);
  if (index_bytes > static_cast<std::int64_t>(bytes.size()) || index_bytes > file_bytes) {
    return damaged(fmt::format("it ends within the index of its {} blocks", count));
  }
  ShardIndex index{.block_tokens = static_cast<std::int64_t>(header.block_tokens)};
  const std::uint64_t most = most_compressed(4 * header.block_tokens);
  const auto end_of_file = static_cast<std::uint64_t>(file_bytes);
  auto free_from = static_cast<std::uint64_t>(index_bytes);
  const unsigned char* from = bytes.data() + sizeof(header);
  for (std::int64_t i = 0; i < count; ++i, from += sizeof(Entry)) {
    Entry entry;
    std::memcpy(&entry, from, sizeof(entry));
    if (entry.bytes == 0 || entry.bytes > most) {
      return damaged(fmt::format("block {} of {} bytes", i, entry.bytes));
    }
    if (entry.offset % kDirectBytes != 0 || entry.offset < free_from ||
        entry.offset > end_of_file) {
      return damaged(fmt::format("block {} at {}", i, entry.offset));
    }
    const ShardBlock block{static_cast<std::int64_t>(entry.offset),
                           static_cast<std::int64_t>(entry.bytes)};
    if (static_cast<std::uint64_t>(block.padded_bytes()) > end_of_file - entry.offset) {
      return damaged(fmt::format("block {} goes on past the end of the file", i));
    }
    free_from = entry.offset + static_cast<std::uint64_t>(block.padded_bytes());
    index.blocks.push_back(block);
  }
  return index;
}

TokenShard::TokenShard(std::int64_t blocks, std::int64_t block_tokens, std::int64_t num_phrases)
    : blocks_(blocks),
      block_tokens_(block_tokens),
      num_phrases_(static_cast<std::uint64_t>(num_phrases)),
      text_(shard_seed()) {}

void TokenShard::recompute(std::span<std::int32_t> out, std::int64_t block) const {
  const std::int64_t first = block * block_tokens_;
  for (std::size_t i = 0; i < out.size(); ++i) {
    const auto at = static_cast<std::uint64_t>(first) + i;
    const std::uint64_t phrase = text_.below(num_phrases_, at / kPhraseTokens);
    const std::uint64_t word = phrase * kPhraseTokens + at % kPhraseTokens;
    out[i] = static_cast<std::int32_t>(text_.below(kVocabulary, kPhraseSeeds + word));
  }
}

const DataFile& TokenShard::file() {
  std::call_once(made_, [&] { make(); });
  return *file_;
}

const ShardIndex& TokenShard::index() {
  std::call_once(made_, [&] { make(); });
  return index_;
}

void TokenShard::make() {
  std::vector<std::vector<unsigned char>> packed(static_cast<std::size_t>(blocks_));
  parallel_for(
      blocks_,
      [&](std::int64_t begin, std::int64_t end) {
        std::vector<std::int32_t> tokens(static_cast<std::size_t>(block_tokens_));
        for (std::int64_t block = begin; block < end; ++block) {
          recompute(tokens, block);
          packed[static_cast<std::size_t>(block)] = compress_lz4_block(
              {reinterpret_cast<const unsigned char*>(tokens.data()), 4 * tokens.size()});
        }
      },
      1);
  ShardIndex planned{.block_tokens = block_tokens_};
  std::int64_t end = shard_index_bytes(blocks_);
  for (const auto& block : packed) {
    planned.blocks.push_back({end, static_cast<std::int64_t>(block.size())});
    end += planned.blocks.back().padded_bytes();
  }
  std::vector<unsigned char> image = write_shard_index(planned);
  image.resize(static_cast<std::size_t>(end));
  for (std::size_t i = 0; i < packed.size(); ++i) {
    std::ranges::copy(packed[i], image.begin() + planned.blocks[i].offset);
  }
  auto made = DataFile::make(std::filesystem::temp_directory_path(), end,
                             [&](std::span<unsigned char> out, std::int64_t begin) {
                               std::memcpy(out.data(), image.data() + begin, out.size());
                             });
  if (!made) fail(made.error().message);
  file_ = std::move(*made);
  // As any reader would have it: from the file.
  const HugePages head(shard_index_bytes(blocks_));
  const std::span<unsigned char> bytes{head.data(),
                                       static_cast<std::size_t>(shard_index_bytes(blocks_))};
  if (const auto read = read_fully(file_->direct(), bytes, 0); !read) fail(read.error().message);
  auto parsed = parse_shard_index(bytes, file_->bytes());
  if (!parsed) fail(parsed.error().message);
  index_ = std::move(*parsed);
}

}  // namespace gauntlet
