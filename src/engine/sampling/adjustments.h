// What a request changes about its logits before a token is drawn: penalties for what was said
// before, and a bias per token. Done on the host, over logits that the executor hands out.
#pragma once
#include <cstdint>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

#include "core/expected.h"

namespace gauntlet::engine::inline sampling {

struct Adjustments {
  float presence_penalty = 0;    // off a token's logit once it was made
  float frequency_penalty = 0;   // off it for each time
  float repetition_penalty = 1;  // makes tokens of prompt and output less likely above 1
  std::vector<std::pair<std::int32_t, float>> bias;  // token, what its logit gets

  bool any() const {
    return presence_penalty != 0 || frequency_penalty != 0 || repetition_penalty != 1 ||
           !bias.empty();
  }
};

/// Holds an error that names the first value that cannot be used with this vocabulary.
Expected<void> validate(const Adjustments& adjustments, std::int64_t vocab);

/// How often a request has seen each token.
class SeenTokens {
 public:
  explicit SeenTokens(std::span<const std::int32_t> prompt);
  void add_output(std::int32_t token) { ++counts_[token]; }
  /// Repetition first, then presence and frequency, then the bias.
  void adjust(const Adjustments& adjustments, std::span<float> logits) const;

 private:
  std::unordered_map<std::int32_t, std::int32_t> counts_;  // in the output; 0: in the prompt only
};

struct TokenLogProb {
  std::int32_t token = -1;
  float log_probability = 0;
};

/// The log-probability of one token, and the likeliest ones, the lowest id first on ties.
float log_probability(std::span<const float> logits, std::int32_t token);
std::vector<TokenLogProb> top_log_probs(std::span<const float> logits, std::int64_t count);

}  // namespace gauntlet::engine::inline sampling
