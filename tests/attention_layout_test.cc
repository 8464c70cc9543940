// Does attention by warpgroups place its operands as the hardware reads them, does its copying warp
// keep in step with those that attend, and does its reference agree with a plain one?
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <span>
#include <vector>

#include "catalog/labs/attention_ladder/attention_schedule.h"
#include "catalog/labs/attention_ladder/expected_attention.h"
#include "core/random.h"
#include "lab/author/binder.h"
#include "ptx/wgmma_descriptor.h"

namespace gauntlet::tests {
namespace {

using namespace labs::attention_ladder;

constexpr int kThreads = 128;  // of a warpgroup
constexpr std::uint32_t kBase = 3 * 1024;

/// Shared memory in which a tensor copy with a swizzle put a tile.
class SwizzledTile {
 public:
  SwizzledTile() : bytes_(1 << 17, 0xFF) {}

  /// Rows of `row_bytes`, 64 or 128 as the swizzle, from `first` on.
  void put(std::uint32_t first, int row_bytes, int row, int byte, std::uint8_t value) {
    bytes_[swizzled(first + static_cast<std::uint32_t>(row * row_bytes + byte), row_bytes)] = value;
  }
  std::uint8_t at(std::uint32_t address, int row_bytes) const {
    return bytes_[swizzled(address, row_bytes)];
  }

 private:
  /// Bits 4 to 6 of an address are xored with bits 7 to 9; in the swizzle of 64 bytes, 4 and 5 with
  /// 7 and 8.
  static std::uint32_t swizzled(std::uint32_t address, int row_bytes) {
    const std::uint32_t bits = row_bytes == 128 ? 7 : 3;
    return address ^ (address >> 7 & bits) << 4;
  }
  std::vector<std::uint8_t> bytes_;
};

constexpr std::uint32_t field(std::uint64_t bits, int first) {
  return static_cast<std::uint32_t>(bits >> first & 0x3FFF) << 4;
}

/// The tile that a descriptor of 16-bit elements with a row per k means: element (k, column).
std::uint32_t of_rows(std::uint64_t descriptor, int k, int column) {
  return field(descriptor, 0) +
         static_cast<std::uint32_t>(column / 64 * static_cast<int>(field(descriptor, 16)) +
                                    k / 8 * static_cast<int>(field(descriptor, 32)) + k % 8 * 128 +
                                    column % 64 * 2);
}

TEST(AttentionLayout, weights_and_values_in_bf16_meet_key_by_key) {
  constexpr int kKeys = 128, kStepKeys = 16;
  for (const int head_dim : {64, 128}) {
    // Tensor copies of 64 columns each; every value says which key and dimension it is of.
    SwizzledTile tile;
    for (int key = 0; key < kKeys; ++key) {
      for (int d = 0; d < head_dim; ++d) {
        const auto atom = kBase + static_cast<std::uint32_t>(d / 64 * kKeys * 128);
        tile.put(atom, 128, key, d % 64 * 2, static_cast<std::uint8_t>(key));
        tile.put(atom, 128, key, d % 64 * 2 + 1, static_cast<std::uint8_t>(d));
      }
    }
    const std::uint64_t values = ptx::wgmma_rows_128b(kBase, kKeys * 128);
    for (int step = 0; step < kKeys / kStepKeys; ++step) {
      const std::uint64_t descriptor = values + static_cast<std::uint64_t>(step * kStepKeys * 8);
      for (int thread = 0; thread < kThreads; ++thread) {
        for (int word = 0; word < 4; ++word) {
          for (int place = 0; place < 2; ++place) {
            // Where the hardware takes this element of A to be (PTX ISA, wgmma's fragments).
            const int lane = thread % 32;
            const int row = thread / 32 * 16 + lane / 4 + word % 2 * 8;
            const int k = lane % 4 * 2 + word / 2 * 8 + place;
            const int sum = operand_sum<2>(4 * step + word, place);
            EXPECT_EQ(sum_row(thread, sum), row);
            for (const int d : {0, 7, 63, head_dim - 1}) {
              const std::uint32_t address = of_rows(descriptor, k, d);
              EXPECT_EQ(tile.at(address, 128), sum_column(thread, sum)) << "the key";
              EXPECT_EQ(tile.at(address + 1, 128), d);
            }
          }
        }
      }
    }
  }
}

TEST(AttentionLayout, weights_and_values_of_8_bits_meet_key_by_key) {
  constexpr int kKeys = 128, kStepKeys = 32;
  for (int step = 0; step < kKeys / kStepKeys; ++step) {
    for (int thread = 0; thread < kThreads; ++thread) {
      for (int word = 0; word < 4; ++word) {
        for (int place = 0; place < 4; ++place) {
          const int lane = thread % 32;
          const int row = thread / 32 * 16 + lane / 4 + word % 2 * 8;
          const int k = lane % 4 * 4 + word / 2 * 16 + place;
          const int sum = operand_sum<1>(4 * step + word, place);
          EXPECT_EQ(sum_row(thread, sum), row);
          EXPECT_EQ(sum_column(thread, sum), step * kStepKeys + value_key(k));
        }
      }
    }
  }
}

TEST(AttentionLayout, narrow_rows_are_found_behind_their_swizzle) {
  constexpr int kRows = 128, kRowBytes = 64;
  SwizzledTile tile;
  for (int row = 0; row < kRows; ++row) {
    for (int byte = 0; byte < kRowBytes; ++byte) {
      tile.put(kBase, kRowBytes, row, byte, static_cast<std::uint8_t>(row ^ byte * 5));
    }
  }
  for (int step = 0; step < kRowBytes / 32; ++step) {
    const std::uint64_t descriptor =
        ptx::wgmma_tile_64b(kBase) + static_cast<std::uint64_t>(2 * step);
    EXPECT_EQ(descriptor >> 62, 2U);
    for (int row = 0; row < kRows; ++row) {
      for (int byte = 0; byte < 32; ++byte) {
        const auto address = field(descriptor, 0) +
                             static_cast<std::uint32_t>(row / 8) * field(descriptor, 32) +
                             static_cast<std::uint32_t>(row % 8 * kRowBytes + byte);
        EXPECT_EQ(tile.at(address, kRowBytes),
                  static_cast<std::uint8_t>(row ^ (step * 32 + byte) * 5));
      }
    }
  }
}

TEST(AttentionSchedule, gives_out_each_query_once_and_the_longest_rows_of_a_head_first) {
  for (const int rows : {128, 192}) {
    for (const int sequence : {64, 128, 192, 576, 1024}) {
      const TileOrder tiles{.heads = 6, .heads_at_once = 3, .sequence = sequence, .rows = rows};
      std::vector<int> given(static_cast<std::size_t>(6 * sequence));
      std::array<int, 6> before;
      before.fill(sequence);
      for (int i = 0; i < tiles.count(); ++i) {
        const Tile tile = tiles[i];
        ASSERT_GE(tile.head, 0);
        ASSERT_LT(tile.head, 6);
        EXPECT_LT(tile.first, before[static_cast<std::size_t>(tile.head)]);
        before[static_cast<std::size_t>(tile.head)] = tile.first;
        EXPECT_EQ(i < tiles.count() / 2, tile.head < 3) << "heads that share L2 go together";
        EXPECT_GE(tile.first + rows, 64) << "the last warpgroup always has queries";
        for (int query = std::max(0, tile.first); query < tile.first + rows; ++query) {
          ++given[static_cast<std::size_t>(tile.head * sequence + query)];
        }
      }
      for (const int times : given) ASSERT_EQ(times, 1);
    }
  }
}

TEST(AttentionSchedule, masks_no_block_but_the_last_that_a_warpgroup_sees) {
  for (const int keys : {64, 128, 192}) {
    for (int first = 0; first < 2048; first += kGroupRows) {
      const int blocks = blocks_seen(first, keys);
      EXPECT_LE((blocks - 1) * keys, first) << "every query sees a key of the last block";
      EXPECT_GE(blocks * keys, first + kGroupRows) << "and none behind it";
    }
  }
  EXPECT_EQ(blocks_seen(-64, 128), 0);
}

/// Attention as it is written down.
std::vector<double> plain_attention(const Params& p) {
  std::vector<double> out(static_cast<std::size_t>(p.heads * p.sequence * p.head_dim));
  for (int head = 0; head < p.heads; ++head) {
    for (int query = 0; query < p.sequence; ++query) {
      const auto row = std::int64_t{head} * p.sequence + query;
      std::vector<double> weights(static_cast<std::size_t>(query) + 1);
      for (int key = 0; key <= query; ++key) {
        double score = 0;
        for (int d = 0; d < p.head_dim; ++d) {
          score += double{to_float(p.q[row * p.head_dim + d])} *
                   to_float(p.k[(std::int64_t{head} * p.sequence + key) * p.head_dim + d]);
        }
        weights[static_cast<std::size_t>(key)] = std::exp(score / std::sqrt(p.head_dim));
      }
      const double sum = std::accumulate(weights.begin(), weights.end(), 0.0);
      for (int key = 0; key <= query; ++key) {
        for (int d = 0; d < p.head_dim; ++d) {
          out[static_cast<std::size_t>(row * p.head_dim + d)] +=
              weights[static_cast<std::size_t>(key)] / sum *
              to_float(p.v[(std::int64_t{head} * p.sequence + key) * p.head_dim + d]);
        }
      }
    }
  }
  return out;
}

TEST(AttentionReference, agrees_with_attention_as_it_is_written_down) {
  constexpr int kHeads = 3, kSequence = 256, kHeadDim = 64;
  constexpr std::int64_t kWords = kHeads * kSequence * kHeadDim;
  std::vector<Bf16> q(kWords), k(kWords), v(kWords);
  lab::Fill::whole_bf16(-2, 3).write(q.data(), 0, kWords, 2, Random(1));
  lab::Fill::whole_bf16_rows(-2, 3, kHeadDim, kKeyKinds).write(k.data(), 0, kWords, 2, Random(2));
  lab::Fill::whole_bf16(-8, 9).write(v.data(), 0, kWords, 2, Random(3));
  const Params p{.q = q.data(),
                 .k = k.data(),
                 .v = v.data(),
                 .heads = kHeads,
                 .sequence = kSequence,
                 .head_dim = kHeadDim};
  lab::Reference reference(7);
  reference.declare("out", DType::bf16, kWords);
  expect_attention(reference, "out", p, {.operands = DType::bf16, .result = DType::bf16}, 16);

  const std::vector<double> plain = plain_attention(p);
  const lab::ExpectedOutput& expected = reference.outputs().at("out");
  ASSERT_EQ(expected.rows.size(), static_cast<std::size_t>(kHeads * kSequence / 16));
  for (std::size_t i = 0; i < expected.rows.size(); ++i) {
    for (std::size_t d = 0; d < kHeadDim; ++d) {
      const auto at = static_cast<std::size_t>(expected.rows[i]) * kHeadDim + d;
      EXPECT_NEAR(expected.values[i * kHeadDim + d], plain[at], 1e-9);
    }
  }
  for (std::size_t row = 0; row < kHeads * kSequence; ++row) {
    double sum = 0;
    for (std::size_t d = 0; d < kHeadDim; ++d) {
      sum += expected.weights[d] * plain[row * kHeadDim + d];
    }
    EXPECT_NEAR(expected.sums[row], sum, 1e-9);
  }
}

}  // namespace
}  // namespace gauntlet::tests
