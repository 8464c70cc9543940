// How much of summing gradients over the ranks hides behind computing the next ones?
#pragma once
#include <cstdint>
#include <span>

#include "core/ranks/link.h"

namespace gauntlet::ch04::allreduce_overlap {

struct Params {
  const float* inputs;  // [layers, batch, width], of this rank
  const float* errors;  // [layers, batch, width], of this rank
  float* gradients;     // [layers, width, width], summed over all ranks
  std::int64_t layers;
  std::int64_t batch;
  std::int64_t width;
  gauntlet::ranks::Fabric fabric;
  int num_ranks;

  std::span<float> gradient(std::int64_t layer) const {
    return {gradients + layer * width * width, static_cast<std::size_t>(width * width)};
  }
};

/// Rows [begin, end) of a layer's gradient on this rank: errorsᵀ · inputs. A few rows at a time
/// stay in the first-level cache while all samples pass by.
inline void compute_rows(const Params& p, std::int64_t layer, std::int64_t begin,
                         std::int64_t end) {
  float* gradient = p.gradient(layer).data();
  for (std::int64_t i = begin * p.width; i < end * p.width; ++i) gradient[i] = 0;
  for (std::int64_t sample = layer * p.batch; sample < (layer + 1) * p.batch; ++sample) {
    const float* input = p.inputs + sample * p.width;
    const float* errors = p.errors + sample * p.width;
    for (std::int64_t row = begin; row < end; ++row) {
      const float error = errors[row];
      float* out = gradient + row * p.width;
      for (std::int64_t i = 0; i < p.width; ++i) out[i] += error * input[i];
    }
  }
}

/// Rows that are computed together.
constexpr std::int64_t kRows = 16;

}  // namespace gauntlet::ch04::allreduce_overlap
