#include "engine/sampling/adjustments.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

namespace gauntlet::engine::inline sampling {
namespace {

double log_sum_exp(std::span<const float> logits) {
  const double top = *std::ranges::max_element(logits);
  double sum = 0;
  for (const float logit : logits) sum += std::exp(logit - top);
  return top + std::log(sum);
}

}  // namespace

Expected<void> validate(const Adjustments& adjustments, std::int64_t vocab) {
  const auto wrong = [](std::string message) {
    return Error{std::move(message), ErrorKind::wrong_use};
  };
  if (!std::isfinite(adjustments.presence_penalty)) {
    return wrong("a presence penalty is a finite number");
  }
  if (!std::isfinite(adjustments.frequency_penalty)) {
    return wrong("a frequency penalty is a finite number");
  }
  if (!std::isfinite(adjustments.repetition_penalty) || adjustments.repetition_penalty <= 0) {
    return wrong(
        fmt::format("a repetition penalty is above 0, not {}", adjustments.repetition_penalty));
  }
  for (const auto& [token, bias] : adjustments.bias) {
    if (token < 0 || token >= vocab) {
      return wrong(fmt::format("the logit bias names token {}, but the vocabulary ends at {}",
                               token, vocab - 1));
    }
    if (!std::isfinite(bias)) {
      return wrong(fmt::format("the logit bias of token {} is not a finite number", token));
    }
  }
  return {};
}

SeenTokens::SeenTokens(std::span<const std::int32_t> prompt) {
  for (const std::int32_t token : prompt) counts_.try_emplace(token, 0);
}

void SeenTokens::adjust(const Adjustments& adjustments, std::span<float> logits) const {
  for (const auto& [token, count] : counts_) {
    float& logit = logits[token];
    const float repetition = adjustments.repetition_penalty;
    logit = logit > 0 ? logit / repetition : logit * repetition;
    if (count == 0) continue;
    logit -= adjustments.presence_penalty;
    logit -= adjustments.frequency_penalty * static_cast<float>(count);
  }
  for (const auto& [token, bias] : adjustments.bias) logits[token] += bias;
}

float log_probability(std::span<const float> logits, std::int32_t token) {
  return static_cast<float>(logits[token] - log_sum_exp(logits));
}

std::vector<TokenLogProb> top_log_probs(std::span<const float> logits, std::int64_t count) {
  std::vector<std::int32_t> ids(logits.size());
  std::iota(ids.begin(), ids.end(), 0);
  const auto end = ids.begin() + std::min<std::int64_t>(count, std::ssize(ids));
  std::partial_sort(ids.begin(), end, ids.end(), [&](std::int32_t a, std::int32_t b) {
    return logits[a] != logits[b] ? logits[a] > logits[b] : a < b;
  });
  const double normaliser = log_sum_exp(logits);
  std::vector<TokenLogProb> top;
  for (auto id = ids.begin(); id != end; ++id) {
    top.push_back({*id, static_cast<float>(logits[*id] - normaliser)});
  }
  return top;
}

}  // namespace gauntlet::engine::inline sampling
