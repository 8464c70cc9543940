// What a backend on a GPU shares with a draft head beside it: a stream in whose order both work,
// the residuals that a step leaves for the head, and the guesses that the head leaves for a step.
#pragma once
#include <cstdint>

namespace gauntlet::engine::inline steps {

struct DeviceSeam {
  void* stream = nullptr;  // cudaStream_t
  /// [export layers, most_tokens, hidden], of the step started last: a row for each of its tokens,
  /// in order, where they stayed.
  const float* residuals = nullptr;
  std::int64_t most_tokens = 0;
  const void* embedding = nullptr;  // bf16, [vocab, hidden]
  void* guesses = nullptr;          // RowChoice, [num_guesses]: what late guesses are places of
  std::int64_t num_guesses = 0;
};

}  // namespace gauntlet::engine::inline steps
