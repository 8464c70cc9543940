// For tests: blocks as liblz4 makes them, and what damage makes of them.
#pragma once
#include <cstddef>
#include <span>
#include <vector>

#include "core/random.h"
#include "core/storage/lz4_block.h"

namespace gauntlet {

/// From all alike to incompressible.
inline std::vector<unsigned char> lz4_sample_text(Random& random, std::size_t size) {
  const std::uint64_t letters = std::uint64_t{1} << random.next_below(9);
  std::vector<unsigned char> text(size);
  for (std::size_t i = 0; i < size; ++i) {
    const bool repeats = i > 40 && random.next_below(4) != 0;
    text[i] = repeats ? text[i - 1 - random.next_below(40)]
                      : static_cast<unsigned char>(random.next_below(letters));
  }
  return text;
}

/// Cuts it, lengthens it or changes bytes of it, up to three times.
inline void damage_lz4_block(Random& random, std::vector<unsigned char>& block) {
  for (std::uint64_t damage = 1 + random.next_below(3); damage > 0; --damage) {
    if (random.next_below(4) == 0) {
      block.resize(random.next_below(block.size() + 4));
    } else if (!block.empty()) {
      block[random.next_below(block.size())] = static_cast<unsigned char>(random.next());
    }
  }
}

/// As the device decodes, but one lane after the other, from the first or from the last on.
enum class LaneOrder { forwards, backwards };
inline std::int64_t decode_lz4_block_by_lanes(std::span<const unsigned char> in,
                                              std::span<unsigned char> out, LaneOrder order,
                                              int lanes = 32) {
  Lz4Parser parser(in.data(), static_cast<std::int64_t>(in.size()),
                   static_cast<std::int64_t>(out.size()));
  const auto each_lane = [&](auto move) {
    for (int i = 0; i < lanes; ++i) {
      move(Lz4Lane{.number = order == LaneOrder::forwards ? i : lanes - 1 - i, .of = lanes});
    }
  };
  for (Lz4Sequence sequence;;) {
    const Lz4Parser::Step step = parser.next(sequence);
    if (step == Lz4Parser::Step::corrupt) return kLz4Corrupt;
    if (step == Lz4Parser::Step::end) return parser.written();
    each_lane([&](Lz4Lane lane) { move_lz4_literals(sequence, in.data(), out.data(), lane); });
    each_lane([&](Lz4Lane lane) { move_lz4_match(sequence, out.data(), lane); });
  }
}

}  // namespace gauntlet
