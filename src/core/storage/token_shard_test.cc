#include "core/storage/token_shard.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <vector>

#include "core/machine/host_features.h"
#include "core/storage/lz4_block.h"
#include "core/storage/lz4_library.h"

namespace gauntlet {
namespace {

using testing::HasSubstr;

constexpr std::int64_t kFileBytes = 10 * kDirectBytes;

ShardIndex two_blocks() {
  return {.block_tokens = 4096, .blocks = {{kDirectBytes, 5000}, {4 * kDirectBytes, 4096}}};
}

std::string refusal(const ShardIndex& index, std::int64_t file_bytes = kFileBytes) {
  const auto parsed = parse_shard_index(write_shard_index(index), file_bytes);
  return parsed ? "" : parsed.error().message;
}

TEST(ShardIndex, comes_back_as_it_was_written) {
  const auto parsed = parse_shard_index(write_shard_index(two_blocks()), kFileBytes);
  ASSERT_TRUE(parsed) << parsed.error().message;
  EXPECT_EQ(parsed->block_tokens, 4096);
  ASSERT_EQ(parsed->blocks.size(), 2u);
  EXPECT_EQ(parsed->blocks[1].offset, 4 * kDirectBytes);
  EXPECT_EQ(parsed->blocks[0].padded_bytes(), 2 * kDirectBytes);
  EXPECT_EQ(parsed->most_padded_bytes(), 2 * kDirectBytes);
}

TEST(ShardIndex, of_no_blocks_is_one) { EXPECT_EQ(refusal({.block_tokens = 1}), ""); }

TEST(ShardIndex, is_refused_where_a_block_cannot_be) {
  const auto with = [](auto change) {
    ShardIndex index = two_blocks();
    change(index);
    return refusal(index);
  };
  EXPECT_EQ(refusal(two_blocks()), "");
  EXPECT_THAT(with([](ShardIndex& s) { s.blocks[0].offset += 8; }), HasSubstr("block 0 at"));
  EXPECT_THAT(with([](ShardIndex& s) { s.blocks[0].offset = 0; }), HasSubstr("block 0 at 0"));
  EXPECT_THAT(with([](ShardIndex& s) { s.blocks[1].offset = 2 * kDirectBytes; }),
              HasSubstr("block 1 at"));
  EXPECT_THAT(with([](ShardIndex& s) { s.blocks[1].bytes = 0; }), HasSubstr("of 0 bytes"));
  EXPECT_THAT(with([](ShardIndex& s) { s.blocks[1].bytes = 1 << 20; }), HasSubstr("of 1048576"));
  EXPECT_THAT(with([](ShardIndex& s) { s.block_tokens = 0; }), HasSubstr("0 tokens"));
  EXPECT_THAT(refusal(two_blocks(), 4 * kDirectBytes), HasSubstr("past the end"));
  EXPECT_THAT(refusal(two_blocks(), 0), HasSubstr("within the index"));
}

TEST(ShardIndex, is_refused_or_within_its_file_whatever_was_damaged) {
  Random random(5);
  const std::vector<unsigned char> sound = write_shard_index(two_blocks());
  int refused = 0;
  for (int round = 0; round < 20'000; ++round) {
    std::vector<unsigned char> bytes = sound;
    for (int damage = 0; damage < 3; ++damage) {
      bytes[random.next_below(56)] = static_cast<unsigned char>(random.next());
    }
    if (random.next_below(8) == 0) bytes.resize(random.next_below(bytes.size()));
    const auto parsed = parse_shard_index(bytes, kFileBytes);
    if (!parsed) {
      ++refused;
      continue;
    }
    for (const ShardBlock& block : parsed->blocks) {
      ASSERT_GE(block.offset, kDirectBytes);
      ASSERT_LE(block.offset + block.padded_bytes(), kFileBytes);
    }
  }
  EXPECT_GT(refused, 10'000);
}

TEST(TokenShardOnDisk, has_the_tokens_that_anybody_computes_and_is_a_fraction_of_them) {
  if (const auto compiled = lz4_compiled(); !compiled) GTEST_SKIP() << compiled.error().message;
  const auto folder = std::filesystem::temp_directory_path();
  if (const auto probed = probe_direct_io(folder); !probed) GTEST_SKIP() << probed.error().message;
  constexpr std::int64_t kBlocks = 5, kTokens = 20'000;
  TokenShard shard(kBlocks, kTokens);
  ASSERT_EQ(shard.index().blocks.size(), static_cast<std::size_t>(kBlocks));
  EXPECT_LT(shard.file().bytes(), kBlocks * kTokens * 4);
  std::vector<std::int32_t> expected(kTokens), read(kTokens);
  for (std::int64_t i = 0; i < kBlocks; ++i) {
    const ShardBlock& block = shard.index().blocks[static_cast<std::size_t>(i)];
    std::vector<unsigned char> packed(static_cast<std::size_t>(block.bytes));
    ASSERT_TRUE(read_fully(shard.file().cached(), packed, block.offset));
    const std::span<unsigned char> out{reinterpret_cast<unsigned char*>(read.data()), 4 * kTokens};
    EXPECT_EQ(decode_lz4_block(packed, out), 4 * kTokens);
    shard.recompute(expected, i);
    EXPECT_EQ(read, expected);
    packed[packed.size() / 2] ^= 0xff;
    packed.resize(packed.size() - 1);
    EXPECT_NE(decode_lz4_block(packed, out), 4 * kTokens);
    EXPECT_NE(inflate_lz4_block(packed, out), 4 * kTokens) << "refused by the library as well";
  }
}

TEST(TokenShardOnDisk, comes_out_smaller_the_fewer_phrases_its_text_has) {
  if (const auto compiled = lz4_compiled(); !compiled) GTEST_SKIP() << compiled.error().message;
  const auto folder = std::filesystem::temp_directory_path();
  if (const auto probed = probe_direct_io(folder); !probed) GTEST_SKIP() << probed.error().message;
  const auto share_left = [](std::int64_t block_tokens, std::int64_t phrases) {
    TokenShard shard(4, block_tokens, phrases);
    double bytes = 0;
    for (const ShardBlock& block : shard.index().blocks) bytes += static_cast<double>(block.bytes);
    return bytes / static_cast<double>(4 * 4 * block_tokens);
  };
  EXPECT_NEAR(share_left(65'536, TokenShard::kUsualPhrases), 0.87, 0.05);
  EXPECT_NEAR(share_left(4096, 256), 0.5, 0.05);
  EXPECT_NEAR(share_left(16'384, 256), 0.23, 0.05);
}

}  // namespace
}  // namespace gauntlet
