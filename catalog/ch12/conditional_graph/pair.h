// What does it cost that the host asks which branch to launch next?
#pragma once
#include <cstdint>

namespace gauntlet::ch12::conditional_graph {

constexpr int kExperts = 4;

/// A router chooses, round by round, one of four experts by what the round before left, and whether
/// a correction follows. The choice is in the top bits of word 0, the gate in the top bit of
/// word 1.
struct Params {
  const std::uint32_t* in;      // [words]
  const std::uint32_t* factor;  // [rounds, kExperts]: an expert does an affine round
  std::uint32_t* out;           // [words]
  std::int64_t words;           // two or more
  std::int64_t rounds;
};

struct Choice {
  std::uint32_t expert;   // below kExperts
  std::uint32_t correct;  // 0 or 1
};

constexpr Choice choose(const std::uint32_t* state) { return {state[0] >> 30, state[1] >> 31}; }

constexpr std::uint32_t corrected(std::uint32_t x) { return x ^ (x >> 15) ^ 0x9E3779B9u; }

}  // namespace gauntlet::ch12::conditional_graph
