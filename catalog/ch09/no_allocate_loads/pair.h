// What do loads gain that keep what is read once out of the first-level cache?
#pragma once
#include <cstdint>

namespace gauntlet::ch09::no_allocate_loads {

inline constexpr int kExperts = 32;
inline constexpr int kChoices = 4;  // experts per token

/// The combine step of a mixture of experts whose outputs have a scale per expert and column.
struct Params {
  const float* outputs;       // [tokens · kChoices, columns], by slot; experts have equal shares
  const std::int32_t* slots;  // [tokens, kChoices]: where a token's outputs are
  const float* weights;       // [tokens, kChoices]
  const float* scales;        // [kExperts, columns]
  float* out;                 // [tokens, columns]: Σ weight · scale · output
  std::int64_t tokens;
  std::int64_t columns;
};

}  // namespace gauntlet::ch09::no_allocate_loads
