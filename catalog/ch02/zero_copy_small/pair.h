// Up to which size is it faster to let a kernel read host memory than to copy it first?
#pragma once
#include <cstdint>
#include <memory>
#include <mutex>

namespace gauntlet::ch02::zero_copy_small {

/// The size from which on copies win, as this process measured it.
struct Crossover {
  std::once_flag measured;
  double bytes = 0;
};

struct Params {
  const std::uint32_t* in;  // [words], in pinned host memory
  std::uint32_t* out;       // [words], likewise: scrambled words
  std::uint32_t* staged;    // [words], on the device
  std::int64_t words;
  std::shared_ptr<Crossover> crossover;
};

constexpr std::uint32_t scrambled(std::uint32_t word) {
  word = (word ^ word >> 16) * 0x85EBCA6Bu;
  return word ^ word >> 13;
}

}  // namespace gauntlet::ch02::zero_copy_small
