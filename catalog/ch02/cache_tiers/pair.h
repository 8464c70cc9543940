// What does it buy to do all work on a part of the data while a cache holds it?
#pragma once
#include <cstdint>

namespace gauntlet::ch02::cache_tiers {

struct Params {
  const std::uint32_t* in;      // [words]
  const std::uint32_t* factor;  // [passes]
  std::uint32_t* out;           // [words]: each word through all passes
  std::int64_t words;
  std::int64_t passes;
  std::int64_t block_words;  // of the optimized side
};

}  // namespace gauntlet::ch02::cache_tiers
