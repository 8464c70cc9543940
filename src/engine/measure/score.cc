#include "engine/measure/score.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace gauntlet::engine::inline measure {
namespace {

/// The sum over one window. Each token is foretold by those before it, the first by BOS.
Expected<double> score_window(Executor& executor, std::span<const std::int32_t> window) {
  KvPool& kv = executor.kv();
  const SequenceId sequence = kv.create();
  double sum = 0;
  for (std::size_t done = 0; done < window.size();) {
    const std::size_t count =
        std::min(window.size() - done, static_cast<std::size_t>(executor.max_batch_tokens()));
    if (!kv.reserve(sequence, static_cast<std::int64_t>(count))) {
      kv.free(sequence);
      return Error{
          fmt::format("the KV cache is too small for a window of {} tokens: give a "
                      "smaller --window",
                      window.size())};
    }
    BatchItem item{.sequence = sequence, .want = Want::nothing};
    for (std::size_t i = done; i < done + count; ++i) {
      item.tokens.push_back(i == 0 ? static_cast<std::int32_t>(executor.config().bos_id)
                                   : window[i - 1]);
      item.targets.push_back(window[i]);
    }
    std::vector<BatchItem> items;
    items.push_back(std::move(item));
    const auto results = executor.collect(executor.submit(std::move(items)));
    for (const double log_probability : results.front().target_log_probs) sum += log_probability;
    done += count;
  }
  kv.free(sequence);
  return sum;
}

}  // namespace

Expected<Score> score_tokens(Executor& executor, std::span<const std::int32_t> tokens,
                             const ScoreOptions& options) {
  const model::ModelConfig& config = executor.config();
  if (options.window < 1 || options.window > config.max_positions) {
    return Error{fmt::format("a window of {} tokens does not fit {}: give 1 to {}", options.window,
                             config.name, config.max_positions),
                 ErrorKind::wrong_use};
  }
  if (config.bos_id < 0) {
    return Error{fmt::format("{} names no BOS token to put before a window", config.name)};
  }
  const std::int64_t windows = std::ssize(tokens) / options.window;
  if (windows == 0) {
    return Error{fmt::format("the text has {} tokens, fewer than one window of {}: give a longer "
                             "text or a smaller window",
                             tokens.size(), options.window),
                 ErrorKind::wrong_use};
  }
  double sum = 0;
  for (std::int64_t i = 0; i < windows; ++i) {
    const auto one = score_window(executor, tokens.subspan(i * options.window, options.window));
    if (!one) return one.error();
    sum += *one;
    if (options.on_window) options.on_window(i + 1, windows);
  }
  Score score{.tokens = windows * options.window};
  score.mean_log_probability = sum / static_cast<double>(score.tokens);
  score.perplexity = std::exp(-score.mean_log_probability);
  if (!std::isfinite(score.perplexity)) {
    return Error{
        fmt::format("{} computed log-probabilities that are no numbers: its weights are "
                    "broken",
                    config.name)};
  }
  return score;
}

}  // namespace gauntlet::engine::inline measure
