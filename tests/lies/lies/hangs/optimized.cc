// Waits for a signal that nobody sends.
#include <unistd.h>

#include "lab/author/side.h"
#include "tests/lies/lies/hangs/pair.h"

namespace gauntlet::lies::hangs::cpu {

lab::Side optimized(const Params&, const lab::Cpu&) {
  return [] {
    while (true) pause();
  };
}

}  // namespace gauntlet::lies::hangs::cpu
