// An operation at a time, as an interpreter of arrays does it: four passes, three of them over what
// the one before has just written.
#include <algorithm>

#include "catalog/ch09/fused_elementwise/pair.h"
#include "lab/author/side.h"

namespace gauntlet::ch09::fused_elementwise::cpu {

lab::Side baseline(const Params& p, const lab::Cpu&) {
  return [p] {
    const auto for_rows = [&](const auto& operation) {
      for (std::int64_t row = 0; row < p.rows; ++row) operation(row * p.columns);
    };
    for_rows([&](std::int64_t first) {
      const float* __restrict__ in = p.in + first;
      const float* __restrict__ scale = p.scale;
      float* __restrict__ out = p.out + first;
      for (std::int64_t i = 0; i < p.columns; ++i) out[i] = in[i] * scale[i];
    });
    for_rows([&](std::int64_t first) {
      const float* __restrict__ bias = p.bias;
      float* __restrict__ out = p.out + first;
      for (std::int64_t i = 0; i < p.columns; ++i) out[i] += bias[i];
    });
    for_rows([&](std::int64_t first) {
      float* __restrict__ out = p.out + first;
      for (std::int64_t i = 0; i < p.columns; ++i) out[i] = std::max(out[i], 0.0f);
    });
    for_rows([&](std::int64_t first) {
      const float* __restrict__ residual = p.residual + first;
      float* __restrict__ out = p.out + first;
      for (std::int64_t i = 0; i < p.columns; ++i) out[i] += residual[i];
    });
  };
}

}  // namespace gauntlet::ch09::fused_elementwise::cpu
