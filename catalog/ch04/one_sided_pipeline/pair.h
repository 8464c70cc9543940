// How does a stage of a pipeline hand its activations to the next?
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>

namespace gauntlet::ch04::one_sided_pipeline {

struct Params {
  const std::uint32_t* inputs;   // [batches, size]: of the first stage
  const std::uint32_t* factors;  // [size]: of this stage
  std::uint32_t* outputs;        // [batches, size]: of this stage, which also go to the next
  std::int64_t batches;
  std::int64_t size;
  int rank;
  int num_ranks;

  std::span<std::uint32_t> output(std::int64_t batch) const {
    return {outputs + batch * size, static_cast<std::size_t>(size)};
  }
  std::size_t bytes() const { return static_cast<std::size_t>(size) * sizeof(std::uint32_t); }
};

/// One batch of a stage.
inline void compute(const Params& p, const std::uint32_t* in, std::span<std::uint32_t> out) {
  for (std::size_t i = 0; i < out.size(); ++i) out[i] = in[i] * p.factors[i] + 1;
}

}  // namespace gauntlet::ch04::one_sided_pipeline
