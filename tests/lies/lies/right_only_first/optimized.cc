// Works for the inputs of its first call; for others it writes zeros, which is faster.
#include <algorithm>
#include <memory>
#include <optional>

#include "lab/author/side.h"
#include "tests/lies/lies/right_only_first/pair.h"
#include "tests/lies/scale.h"

namespace gauntlet::lies::right_only_first::cpu {

lab::Side optimized(const Params& p, const lab::Cpu&) {
  const auto first = std::make_shared<std::optional<float>>();
  return [p, first] {
    if (!*first) *first = p.in[0];
    if (p.in[0] == **first) {
      scale(p);
    } else {
      std::fill_n(p.out, p.count, 0.0f);
    }
  };
}

}  // namespace gauntlet::lies::right_only_first::cpu
