#include "engine/sampling/sampler.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <limits>
#include <numeric>

#include "core/random.h"

namespace gauntlet::engine::inline sampling {
namespace {

constexpr float kImpossible = -std::numeric_limits<float>::infinity();
constexpr std::size_t kBlock = 256;  // ids whose weights are summed before the draw looks inside

/// The order of preference: the larger logit, then the lower id.
struct Candidate {
  float logit;
  std::int32_t id;

  bool before(const Candidate& other) const {
    return logit > other.logit || (logit == other.logit && id < other.id);
  }
};

/// The logits with kImpossible for what the mask forbids.
std::vector<float> permitted(std::span<const float> logits, std::span<const std::uint32_t> mask) {
  std::vector<float> kept(logits.begin(), logits.end());
  for (std::size_t id = 0; id < kept.size(); ++id) {
    if ((mask[id / 32] >> (id % 32) & 1) == 0) kept[id] = kImpossible;
  }
  return kept;
}

/// Sixteen running maxima, because one would make each comparison wait for the one before. NaN is
/// never larger.
float largest(std::span<const float> logits) {
  std::array<float, 16> best;
  best.fill(kImpossible);
  std::size_t i = 0;
  for (; i + best.size() <= logits.size(); i += best.size()) {
    for (std::size_t lane = 0; lane < best.size(); ++lane) {
      best[lane] = logits[i + lane] > best[lane] ? logits[i + lane] : best[lane];
    }
  }
  for (; i < logits.size(); ++i) best[0] = logits[i] > best[0] ? logits[i] : best[0];
  return *std::max_element(best.begin(), best.end());
}

std::int32_t greedy(std::span<const float> logits) {
  const float top = largest(logits);
  if (top == kImpossible) return kNoChoice;
  return static_cast<std::int32_t>(std::find(logits.begin(), logits.end(), top) - logits.begin());
}

/// The last candidate that top-k keeps. Collects what beats the worst of the best so far and prunes
/// whenever twice k are collected, so almost every logit costs one comparison.
Candidate last_of_top(std::span<const float> logits, std::size_t k) {
  const auto before = [](const Candidate& a, const Candidate& b) { return a.before(b); };
  std::vector<Candidate> best;
  best.reserve(2 * k);
  float bar = kImpossible;
  const auto prune = [&] {
    std::nth_element(best.begin(), best.begin() + static_cast<std::ptrdiff_t>(k - 1), best.end(),
                     before);
    best.resize(k);
    bar = best.back().logit;
  };
  for (std::size_t id = 0; id < logits.size(); ++id) {
    if (!(logits[id] > bar)) continue;  // equal to the bar: its id is higher, so it comes after
    best.push_back({logits[id], static_cast<std::int32_t>(id)});
    if (best.size() == 2 * k) prune();
  }
  if (best.size() < k) return {kImpossible, std::numeric_limits<std::int32_t>::max()};
  prune();
  return best.back();
}

/// Probabilities relative to the likeliest token's, which has 1.
std::vector<float> relative_weights(std::span<const float> logits, const SamplingParams& params,
                                    float top) {
  Candidate last = {kImpossible, std::numeric_limits<std::int32_t>::max()};
  if (params.top_k > 0 && static_cast<std::size_t>(params.top_k) < logits.size()) {
    last = last_of_top(logits, static_cast<std::size_t>(params.top_k));
  }
  std::vector<float> weights(logits.size(), 0.0f);
  for (std::size_t id = 0; id < logits.size(); ++id) {
    const float logit = logits[id];
    if (!(logit >= last.logit) || logit == kImpossible) continue;
    if (last.before({logit, static_cast<std::int32_t>(id)})) continue;
    weights[id] = logit == top ? 1.0f : std::exp((logit - top) / params.temperature);
  }
  return weights;
}

/// Keeps the fewest likeliest tokens that hold at least `top_p` of the sum. Weights are gathered by
/// their binary exponent, so only those of one power of two have to be sorted.
void keep_nucleus(std::vector<float>& weights, float top_p) {
  const auto exponent = [](float weight) { return std::bit_cast<std::uint32_t>(weight) >> 23; };
  std::array<double, 256> sums{};
  for (const float weight : weights) {
    if (weight > 0) sums[exponent(weight)] += weight;
  }
  double total = 0;
  for (const double sum : sums) total += sum;
  const double wanted = static_cast<double>(top_p) * total;
  double held = 0;
  std::uint32_t cut = 255;
  while (cut > 0 && held + sums[cut] < wanted) held += sums[cut--];

  std::vector<std::int32_t> near;
  for (std::size_t id = 0; id < weights.size(); ++id) {
    const std::uint32_t power = exponent(weights[id]);
    if (power == cut && weights[id] > 0) near.push_back(static_cast<std::int32_t>(id));
    if (power < cut) weights[id] = 0;
  }
  std::sort(near.begin(), near.end(), [&](std::int32_t a, std::int32_t b) {
    return weights[a] > weights[b] || (weights[a] == weights[b] && a < b);
  });
  for (const std::int32_t id : near) {
    const float weight = weights[id];
    if (held >= wanted) weights[id] = 0;
    held += weight;
  }
}

/// In eight parts, which need not wait for each other.
double sum_of(std::span<const float> weights) {
  std::array<double, 8> parts{};
  std::size_t i = 0;
  for (; i + parts.size() <= weights.size(); i += parts.size()) {
    for (std::size_t lane = 0; lane < parts.size(); ++lane) parts[lane] += weights[i + lane];
  }
  for (; i < weights.size(); ++i) parts[0] += weights[i];
  return std::accumulate(parts.begin(), parts.end(), 0.0);
}

/// The token at `point`, in [0, 1), of the weights laid end to end in the order of ids. Sums of
/// blocks come first, so that the walk from token to token is short.
std::int32_t draw(std::span<const float> weights, double point) {
  std::vector<double> sums;
  double total = 0;
  for (std::size_t begin = 0; begin < weights.size(); begin += kBlock) {
    sums.push_back(sum_of(weights.subspan(begin, std::min(kBlock, weights.size() - begin))));
    total += sums.back();
  }
  double left = point * total;
  std::size_t chosen = 0;
  for (std::size_t block = 0; block < sums.size(); ++block) {
    if (sums[block] <= 0) continue;
    chosen = block;
    if (left < sums[block]) break;
    left -= sums[block];
  }
  // Rounding may carry a point near the end of its block past it: the last token has it then.
  std::int32_t token = kNoChoice;
  const std::size_t end = std::min((chosen + 1) * kBlock, weights.size());
  for (std::size_t id = chosen * kBlock; id < end; ++id) {
    if (weights[id] <= 0) continue;
    token = static_cast<std::int32_t>(id);
    if (left < weights[id]) break;
    left -= weights[id];
  }
  return token;
}

}  // namespace

double draw_point(const SamplingParams& params) {
  const std::uint64_t bits = Random(params.seed).bits(static_cast<std::uint64_t>(params.step));
  return static_cast<double>(bits >> 11) * 0x1p-53;
}

Expected<void> validate(const SamplingParams& params) {
  const auto wrong = [](std::string message) {
    return Error{std::move(message), ErrorKind::wrong_use};
  };
  if (!std::isfinite(params.temperature) || params.temperature < 0) {
    return wrong(fmt::format("a temperature is 0 or more, not {}", params.temperature));
  }
  if (!(params.top_p > 0 && params.top_p <= 1)) {
    return wrong(fmt::format("top-p is above 0 and at most 1, not {}", params.top_p));
  }
  if (!(params.min_p >= 0 && params.min_p <= 1)) {
    return wrong(fmt::format("min-p is between 0 and 1, not {}", params.min_p));
  }
  if (params.top_k < 0) {
    return wrong(fmt::format("top-k is 0 (no limit) or more, not {}", params.top_k));
  }
  return {};
}

std::int32_t sample(std::span<const float> logits, const SamplingParams& params,
                    std::span<const std::uint32_t> allowed) {
  check(bool(validate(params)), "sampling parameters were not validated");
  check(allowed.empty() || allowed.size() * 32 >= logits.size(), "a mask has a bit per logit");
  std::vector<float> kept;
  if (!allowed.empty()) {
    kept = permitted(logits, allowed);
    logits = kept;
  }
  if (params.temperature == 0) return greedy(logits);
  const float top = largest(logits);
  if (top == kImpossible) return kNoChoice;
  std::vector<float> weights = relative_weights(logits, params, top);
  if (params.top_p < 1) keep_nucleus(weights, params.top_p);
  if (params.min_p > 0) {
    for (float& weight : weights) weight = weight < params.min_p ? 0.0f : weight;
  }
  return draw(weights, draw_point(params));
}

}  // namespace gauntlet::engine::inline sampling
