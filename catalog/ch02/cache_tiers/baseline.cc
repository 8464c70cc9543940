// Pass after pass over all words.
#include "catalog/ch02/cache_tiers/pair.h"
#include "lab/author/side.h"

namespace gauntlet::ch02::cache_tiers::cpu {

lab::Side baseline(const Params& p, const lab::Cpu&) {
  return [p] {
    for (std::int64_t pass = 0; pass < p.passes; ++pass) {
      const std::uint32_t* from = pass == 0 ? p.in : p.out;
      const std::uint32_t factor = p.factor[pass];
      for (std::int64_t i = 0; i < p.words; ++i) p.out[i] = from[i] * factor + 1;
    }
  };
}

}  // namespace gauntlet::ch02::cache_tiers::cpu
