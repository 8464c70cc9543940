// Which queries a block attends for and which keys they see, and where a thread's sums and operands
// of wgmma are: plain arithmetic, for host and device.
#pragma once
#include <cstdint>

namespace gauntlet::labs::attention_ladder {

inline constexpr int kGroupRows = 64;  // queries of a warpgroup

/// A block's queries: as many rows as its warpgroups have, which end where the next tile begins.
struct Tile {
  int head;
  int first;  // query; below 0 where the first warpgroups have none
};

/// Tiles of all heads, in the order in which they are given out. The longest rows come first, in
/// all of the heads that go together; what is left over when the sequence is cut up comes first in
/// the head, where rows are short.
struct TileOrder {
  int heads;
  int heads_at_once;  // whose keys and values L2 holds; divides `heads`
  int sequence;       // a multiple of 64
  int rows;           // of a tile

  constexpr int per_head() const { return (sequence + rows - 1) / rows; }
  constexpr int count() const { return per_head() * heads; }
  constexpr Tile operator[](int index) const {
    const int together = per_head() * heads_at_once, within = index % together;
    return {.head = index / together * heads_at_once + within % heads_at_once,
            .first = sequence - (within / heads_at_once + 1) * rows};
  }
};

/// Blocks of keys that a warpgroup with this first query sees, the last of them in part.
constexpr int blocks_seen(int first_query, int block_keys) {
  return first_query < 0 ? 0 : first_query / block_keys + 1;
}

/// Where a role is in a ring of stages: the parity of the phase that it waits for.
template <int kStages>
struct RingAt {
  int stage = 0;
  std::uint32_t parity = 0;

  constexpr void advance() {
    if (++stage == kStages) {
      stage = 0;
      parity ^= 1;
    }
  }
};

// Of a product of 64 rows, a thread of the warpgroup has sums 0, 1, ...
constexpr int sum_row(int thread, int sum) {
  return thread / 4 % 8 + thread / 32 * 16 + sum / 2 % 2 * 8;
}
constexpr int sum_column(int thread, int sum) { return sum / 4 * 8 + thread % 4 * 2 + sum % 2; }

/// Which sum becomes element `place` of operand register `word`, when sums are the A operand of the
/// next product. Of two bytes, two neighbouring groups of 8 columns are the 16 of a step, in the
/// order of the registers. Of one byte, a register holds four columns in a row where a thread has
/// two and two: so columns trade places, and the values' keys with them (value_key()).
template <int kElementBytes>
constexpr int operand_sum(int word, int place) {
  if (kElementBytes == 2) return 2 * word + place;
  return word / 2 * 8 + word % 2 * 2 + place / 2 * 4 + place % 2;
}

/// Which of 32 keys lies at `place` of a row of 8-bit values.
constexpr int value_key(int place) {
  const int half = place / 16, thread = place / 4 % 4, group = place / 2 % 2;
  return 8 * (2 * half + group) + 2 * thread + place % 2;
}

}  // namespace gauntlet::labs::attention_ladder
