#include <algorithm>

#include "engine/speculation/eagle.h"

namespace gauntlet::engine::inline speculation {
namespace {

/// Positions of a long prompt that go through the head together.
constexpr std::int64_t kTogether = 256;

}  // namespace

void EagleDrafter::computed(std::span<const ComputedTokens> tokens) {
  const std::int64_t hidden = layer_->config().hidden;
  for (const ComputedTokens& some : tokens) {
    Request& request = requests_[some.id];
    EagleLayer::Cache& cache = request.cache;
    const std::int64_t next = cache.first + cache.length;
    const std::int64_t known = next + std::ssize(request.features) / hidden;
    if (some.begin > known) {
      // Of what came from the prefix cache, or was not shown, it has no residuals: it goes on
      // behind, with what it saw before.
      cache.first = some.begin - cache.length;
      request.features.clear();
    } else if (some.begin + some.count <= next) {
      continue;  // computed once more after its pages were given up
    } else {
      request.features.resize(
          static_cast<std::size_t>(std::max<std::int64_t>(0, some.begin - next) * hidden));
    }
    const std::int64_t skipped = std::max<std::int64_t>(0, cache.first + cache.length - some.begin);
    const std::int64_t count = some.count - skipped;
    const std::size_t at = request.features.size();
    request.features.resize(at + static_cast<std::size_t>(count * hidden));
    layer_->fuse(some.residuals, skipped, request.features.data() + at);
  }
}

std::vector<float> EagleDrafter::catch_up(Request& request, std::span<const std::int32_t> tokens) {
  const std::int64_t hidden = layer_->config().hidden;
  EagleLayer::Cache& cache = request.cache;
  const std::int64_t begin = cache.first + cache.length;
  const std::int64_t count = std::ssize(tokens) - 1 - begin;
  if (count < 1 || std::ssize(request.features) < count * hidden) return {};
  std::vector<float> out;
  for (std::int64_t done = 0; done < count;) {
    const std::int64_t some = std::min(kTogether, count - done);
    out.resize(static_cast<std::size_t>(some * hidden));
    layer_->run(cache, tokens.subspan(begin + done + 1, some),
                request.features.data() + done * hidden, out.data());
    done += some;
  }
  request.features.clear();
  return {out.end() - hidden, out.end()};
}

std::vector<Draft> EagleDrafter::propose(std::span<const DraftWish> wishes) {
  std::vector<Draft> drafts;
  for (const DraftWish& wish : wishes) {
    Draft& draft = drafts.emplace_back();
    Request& request = requests_[wish.id];
    std::vector<float> feature = catch_up(request, wish.tokens);
    if (feature.empty()) continue;
    const std::int64_t known = request.cache.length;
    if (!wish.tree.is_chain()) {
      draft = tree(request.cache, wish, std::move(feature));
      request.cache.length = known;
      continue;
    }
    for (std::int64_t i = 0; i < wish.most; ++i) {
      if (i > 0) {
        std::vector<float> next(feature.size());
        layer_->run(request.cache, {&draft.back(), 1}, feature.data(), next.data());
        feature = std::move(next);
      }
      const std::vector<float> logits = layer_->logits(feature.data());
      draft.push_back(
          layer_->target_id(layer_->kernels().argmax(logits.data(), std::ssize(logits))));
    }
    // The head's own features stand in for the target's only while it guesses.
    request.cache.length = known;
  }
  return drafts;
}

}  // namespace gauntlet::engine::inline speculation
