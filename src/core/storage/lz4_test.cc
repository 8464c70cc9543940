#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include "core/random.h"
#include "core/storage/lz4_block.h"
#include "core/storage/lz4_library.h"
#include "core/storage/lz4_samples.h"

namespace gauntlet {
namespace {

using Bytes = std::vector<unsigned char>;

/// What a block comes to; empty where it is refused.
std::string decoded(const Bytes& block, std::size_t room = 64) {
  Bytes out(room);
  const std::int64_t count = decode_lz4_block(block, out);
  if (count == kLz4Corrupt) return "";
  return {out.begin(), out.begin() + count};
}

// Blocks written by hand after the format's description.
TEST(Lz4Block, has_literals_alone) { EXPECT_EQ(decoded({0x30, 'a', 'b', 'c'}), "abc"); }

TEST(Lz4Block, repeats_what_it_writes_itself) {
  EXPECT_EQ(decoded({0x14, 'a', 1, 0, 0x20, 'y', 'z'}), "aaaaaaaaayz");
  EXPECT_EQ(decoded({0x21, 'a', 'b', 2, 0, 0x10, 'z'}), "abababaz");
}

TEST(Lz4Block, has_lengths_that_go_on_in_bytes) {
  Bytes block = {0xf0, 5};
  block.insert(block.end(), 20, 'q');
  EXPECT_EQ(decoded(block), std::string(20, 'q'));
  EXPECT_EQ(decoded({0x1f, 'a', 1, 0, 255, 3, 0x10, 'b'}, 400), std::string(278, 'a') + "b");
}

TEST(Lz4Block, is_refused_where_it_is_cut_or_reaches_too_far) {
  EXPECT_EQ(decoded({}), "");
  EXPECT_EQ(decoded({0x30, 'a', 'b'}), "") << "literals past the end";
  EXPECT_EQ(decoded({0xf0}), "") << "a length that does not end";
  EXPECT_EQ(decoded({0x14, 'a', 1}), "") << "half an offset";
  EXPECT_EQ(decoded({0x14, 'a', 0, 0, 0x10, 'z'}), "") << "an offset of nothing";
  EXPECT_EQ(decoded({0x14, 'a', 2, 0, 0x10, 'z'}), "") << "a match before the beginning";
  EXPECT_EQ(decoded({0x14, 'a', 1, 0}), "") << "a match at the end";
  EXPECT_EQ(decoded({0x30, 'a', 'b', 'c'}, 2), "") << "more literals than there is room for";
  EXPECT_EQ(decoded({0x14, 'a', 1, 0, 0x10, 'z'}, 8), "") << "a match longer than the room";
}

TEST(Lz4Block, is_refused_where_lengths_would_overflow) {
  Bytes block = {0xf0};
  block.insert(block.end(), 100'000, 255);
  EXPECT_EQ(decoded(block), "");
}

class Lz4Library : public testing::Test {
 protected:
  void SetUp() override {
    if (const auto compiled = lz4_compiled(); !compiled) GTEST_SKIP() << compiled.error().message;
  }
};

TEST_F(Lz4Library, is_read_back_by_our_decoder_by_lanes_and_by_its_own) {
  Random random(1);
  for (const std::size_t size : {1, 4, 12, 13, 64, 1000, 65536, 70'001, 300'000}) {
    const Bytes raw = lz4_sample_text(random, size);
    const Bytes block = compress_lz4_block(raw);
    Bytes ours(size), theirs(size);
    EXPECT_EQ(decode_lz4_block(block, ours), static_cast<std::int64_t>(size));
    EXPECT_EQ(inflate_lz4_block(block, theirs), static_cast<std::int64_t>(size));
    EXPECT_EQ(ours, raw) << size;
    EXPECT_EQ(theirs, raw) << size;
    for (const LaneOrder order : {LaneOrder::forwards, LaneOrder::backwards}) {
      Bytes by_lanes(size);
      EXPECT_EQ(decode_lz4_block_by_lanes(block, by_lanes, order), static_cast<std::int64_t>(size));
      EXPECT_EQ(by_lanes, raw) << size;
    }
  }
}

TEST_F(Lz4Library, never_takes_a_damaged_block_for_other_bytes_than_we_do_in_any_order_of_lanes) {
  Random random(2);
  int refused = 0, taken = 0;
  for (int round = 0; round < 20'000; ++round) {
    const Bytes raw = lz4_sample_text(random, 1 + random.next_below(600));
    Bytes block = compress_lz4_block(raw);
    damage_lz4_block(random, block);
    // What lies past the room must stay as it is.
    Bytes ours(raw.size() + 32, 0xee), theirs(raw.size());
    const std::int64_t our_count = decode_lz4_block(block, {ours.data(), raw.size()});
    const std::int64_t their_count = inflate_lz4_block(block, theirs);
    ASSERT_TRUE(std::all_of(ours.begin() + static_cast<std::ptrdiff_t>(raw.size()), ours.end(),
                            [](unsigned char byte) { return byte == 0xee; }));
    refused += our_count == kLz4Corrupt ? 1 : 0;
    for (const LaneOrder order : {LaneOrder::forwards, LaneOrder::backwards}) {
      // Also what was written before the damage showed must be the same.
      Bytes by_lanes(ours.size(), 0xee);
      ASSERT_EQ(decode_lz4_block_by_lanes(block, {by_lanes.data(), raw.size()}, order), our_count);
      ASSERT_EQ(by_lanes, ours) << "round " << round;
    }
    if (their_count == kLz4Corrupt || their_count == 0) continue;
    // liblz4 takes an offset of nothing, which the format forbids, and leaves what was there.
    const unsigned char nothing[] = {0, 0};
    if (our_count == kLz4Corrupt && !std::ranges::search(block, nothing).empty()) continue;
    ++taken;
    ASSERT_EQ(our_count, their_count) << "round " << round;
    ASSERT_EQ(std::memcmp(ours.data(), theirs.data(), static_cast<std::size_t>(our_count)), 0);
  }
  EXPECT_GT(refused, 1000);
  EXPECT_GT(taken, 100);
}

}  // namespace
}  // namespace gauntlet
