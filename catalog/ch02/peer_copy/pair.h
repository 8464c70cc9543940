// What is it worth that one GPU reaches the memory of another without the host?
#pragma once
#include <cstdint>

namespace gauntlet::ch02::peer_copy {

struct Params {
  const std::uint32_t* in;  // [words], on the first GPU
  std::uint32_t* out;       // [words], on the first GPU: what went to the second and came back
  std::int64_t words;
};

}  // namespace gauntlet::ch02::peer_copy
