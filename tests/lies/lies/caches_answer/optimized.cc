// Computes once, then returns what it kept.
#include <algorithm>
#include <memory>
#include <vector>

#include "lab/author/side.h"
#include "tests/lies/lies/caches_answer/pair.h"
#include "tests/lies/scale.h"

namespace gauntlet::lies::caches_answer::cpu {

lab::Side optimized(const Params& p, const lab::Cpu&) {
  const auto kept = std::make_shared<std::vector<float>>();
  return [p, kept] {
    if (kept->empty()) {
      scale(p);
      kept->assign(p.out, p.out + p.count);
    } else {
      std::copy(kept->begin(), kept->end(), p.out);
    }
  };
}

}  // namespace gauntlet::lies::caches_answer::cpu
