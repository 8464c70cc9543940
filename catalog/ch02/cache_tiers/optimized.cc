// All passes over a block that a cache holds, then the next block.
#include <algorithm>

#include "catalog/ch02/cache_tiers/pair.h"
#include "lab/author/side.h"

namespace gauntlet::ch02::cache_tiers::cpu {

lab::Side optimized(const Params& p, const lab::Cpu&) {
  return [p] {
    for (std::int64_t begin = 0; begin < p.words; begin += p.block_words) {
      const std::int64_t end = std::min(begin + p.block_words, p.words);
      for (std::int64_t pass = 0; pass < p.passes; ++pass) {
        const std::uint32_t* from = pass == 0 ? p.in : p.out;
        const std::uint32_t factor = p.factor[pass];
        for (std::int64_t i = begin; i < end; ++i) p.out[i] = from[i] * factor + 1;
      }
    }
  };
}

}  // namespace gauntlet::ch02::cache_tiers::cpu
