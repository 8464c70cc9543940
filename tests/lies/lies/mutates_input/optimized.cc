// Leaves a mark in the input after having used it.
#include "lab/author/side.h"
#include "tests/lies/lies/mutates_input/pair.h"
#include "tests/lies/scale.h"

namespace gauntlet::lies::mutates_input::cpu {

lab::Side optimized(const Params& p, const lab::Cpu&) {
  return [p] {
    scale(p);
    const_cast<float*>(p.in)[p.count / 2] = 0.25f;
  };
}

}  // namespace gauntlet::lies::mutates_input::cpu
