// Prints until it is stopped.
#include <cstdio>

#include "lab/author/side.h"
#include "tests/lies/lies/prints_forever/pair.h"

namespace gauntlet::lies::prints_forever::cpu {

lab::Side optimized(const Params&, const lab::Cpu&) {
  return [] {
    while (true)
      std::puts("and on, and on, and on, and on, and on, and on, and on, and on, and on");
  };
}

}  // namespace gauntlet::lies::prints_forever::cpu
