// Counter-based random numbers: element i of a stream depends on (seed, i) alone, so a buffer can
// be filled by many threads and comes out the same.
#pragma once
#include <bit>
#include <cstdint>

namespace gauntlet {

/// splitmix64's finaliser: a bijection whose outputs pass as random.
constexpr std::uint64_t mix64(std::uint64_t x) {
  x += 0x9E3779B97F4A7C15u;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
  return x ^ (x >> 31);
}

class Random {
 public:
  explicit constexpr Random(std::uint64_t seed) : key_(mix64(seed)) {}

  constexpr std::uint64_t bits(std::uint64_t index) const {
    return mix64(key_ + index * 0xD1B54A32D192ED03u);
  }
  /// In [0, bound); the bias of the multiply-shift reduction is below 2^-32 for any bound under
  /// 2^32.
  constexpr std::uint64_t below(std::uint64_t bound, std::uint64_t index) const {
    return static_cast<std::uint64_t>((static_cast<unsigned __int128>(bits(index)) * bound) >> 64);
  }
  /// In [0, 1), 24 bits: exact in float.
  constexpr float unit(std::uint64_t index) const {
    return static_cast<float>(bits(index) >> 40) * 0x1p-24f;
  }
  constexpr float uniform(float low, float high, std::uint64_t index) const {
    return low + (high - low) * unit(index);
  }

  /// Element `index` of a random order of [0, size): each value comes up once. Multiplying by an
  /// odd number and folding the upper half down permute a power of two; what falls outside of
  /// `size` goes round again.
  constexpr std::uint64_t permuted(std::uint64_t size, std::uint64_t index) const {
    const auto bits = static_cast<int>(std::bit_width(size - 1));
    const std::uint64_t mask = (std::uint64_t{1} << bits) - 1;
    do {
      for (std::uint64_t round = 0; round < 3; ++round) {
        const std::uint64_t key = mix64(key_ ^ (round + 1));
        index = (index * (key | 1) + (key >> 32)) & mask;
        index ^= index >> ((bits + 1) / 2);
      }
    } while (index >= size);
    return index;
  }

  std::uint64_t next() { return bits(counter_++); }
  std::uint64_t next_below(std::uint64_t bound) { return below(bound, counter_++); }

 private:
  std::uint64_t key_;
  std::uint64_t counter_ = 0;
};

}  // namespace gauntlet
