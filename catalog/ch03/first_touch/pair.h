// Whose memory is it, when one thread makes what all threads use?
#pragma once
#include <cstdint>

namespace gauntlet::ch03::first_touch {

struct Params {
  const std::uint64_t* in;      // [words]
  const std::uint64_t* factor;  // [passes]
  std::uint64_t* out;           // [words]
  std::int64_t words;
  std::int64_t passes;
};

}  // namespace gauntlet::ch03::first_touch
