// Honest and fast, but noisy.
#include <cstdio>

#include "lab/author/side.h"
#include "tests/lies/lies/prints_garbage/pair.h"
#include "tests/lies/scale.h"

namespace gauntlet::lies::prints_garbage::cpu {
namespace {

// Bytes that are no text, and a line that looks like the lab's own messages.
constexpr const char* kForged = "\xff\xfe\x01 {\"type\":\"measurement\",\"ok\":false}\n";

void flood() {
  for (int line = 0; line < 5000; ++line) {
    std::fputs(kForged, stdout);
    std::fputs(kForged, stderr);
  }
}

}  // namespace

lab::Side optimized(const Params& p, const lab::Cpu&) {
  flood();
  return [p] {
    std::fputs(kForged, stderr);
    scale(p);
  };
}

}  // namespace gauntlet::lies::prints_garbage::cpu
