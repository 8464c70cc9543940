#include "model/mxfp4.h"

#include <cstring>

namespace gauntlet::model {
namespace {

constexpr std::uint64_t kLowNibbles = 0x0F0F0F0F0F0F0F0Fu;

std::uint64_t load(const std::uint8_t* bytes) {
  std::uint64_t word = 0;
  std::memcpy(&word, bytes, sizeof(word));
  return word;
}

void store(std::uint64_t word, std::uint8_t* bytes) { std::memcpy(bytes, &word, sizeof(word)); }

/// Eight bytes that hold a nibble each to four bytes of two: byte 2k beside byte 2k + 1.
std::uint64_t join(std::uint64_t word) {
  word = (word | word >> 4) & 0x00FF00FF00FF00FFu;
  word = (word | word >> 8) & 0x0000FFFF0000FFFFu;
  return (word | word >> 16) & 0x00000000FFFFFFFFu;
}

/// The reverse: the low four bytes to eight bytes that hold a nibble each.
std::uint64_t part(std::uint64_t word) {
  word = (word | word << 16) & 0x0000FFFF0000FFFFu;
  word = (word | word << 8) & 0x00FF00FF00FF00FFu;
  return (word | word << 4) & kLowNibbles;
}

}  // namespace

void decode_mxfp4(const std::uint8_t* nibbles, const std::uint8_t* scales, std::int64_t count,
                  float* out) {
  for (std::int64_t block = 0; block < count / kMxfp4Block; ++block) {
    const float scale = e8m0_value(scales[block]);
    for (std::int64_t j = 0; j < kMxfp4NibbleBytes; ++j) {
      const std::uint8_t byte = nibbles[block * kMxfp4NibbleBytes + j];
      out[block * kMxfp4Block + 2 * j] = kMxfp4Values[byte & 15] * scale;
      out[block * kMxfp4Block + 2 * j + 1] = kMxfp4Values[byte >> 4] * scale;
    }
  }
}

void halves_to_neighbours(const std::uint8_t* halves, std::uint8_t* neighbours) {
  const std::uint64_t first = load(halves), second = load(halves + 8);
  store(join(first & kLowNibbles) | join(second & kLowNibbles) << 32, neighbours);
  store(join(first >> 4 & kLowNibbles) | join(second >> 4 & kLowNibbles) << 32, neighbours + 8);
}

void neighbours_to_halves(const std::uint8_t* neighbours, std::uint8_t* halves) {
  const std::uint64_t low = load(neighbours), high = load(neighbours + 8);
  store(part(low & 0xFFFFFFFFu) | part(high & 0xFFFFFFFFu) << 4, halves);
  store(part(low >> 32) | part(high >> 32) << 4, halves + 8);
}

}  // namespace gauntlet::model
