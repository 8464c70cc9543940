// What does it cost to wait for the whole device where one stream depends on another?
#pragma once
#include <cstdint>

namespace gauntlet::ch11::event_dependencies {

/// Two halves of a field on a stream each. In a round each half takes its words times a factor, and
/// adds those that the other half had before the round. Sides clear a factor's lowest bit: a round
/// multiplies the halves' sum by factor + 1 and their difference by factor - 1, and while these
/// were even half of the time, 64 rounds came to 0 whatever the input.
struct Params {
  const std::uint32_t* in;      // [2, words]
  const std::uint32_t* factor;  // [rounds]
  std::uint32_t* between;       // [2 buffers, 2, words]
  std::uint32_t* out;           // [2, words]
  std::int64_t words;
  std::int64_t rounds;
};

}  // namespace gauntlet::ch11::event_dependencies
