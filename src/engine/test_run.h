// What engine tests do with an executor: run a prompt in chunks, decode a token, score a text.
#pragma once
#include <algorithm>
#include <vector>

#include "core/check.h"
#include "engine/steps/executor.h"

namespace gauntlet::engine {

inline ItemResult step(Executor& executor, BatchItem item) {
  check(executor.kv().reserve(item.sequence, std::ssize(item.tokens)), "the test ran out of pages");
  std::vector<BatchItem> items;
  items.push_back(std::move(item));
  return executor.collect(executor.submit(std::move(items)))[0];
}

/// Runs `ids` in chunks; the logits after the last come back.
inline ItemResult prefill(Executor& executor, SequenceId sequence,
                          const std::vector<std::int32_t>& ids, std::int64_t chunk) {
  ItemResult result;
  for (std::int64_t at = 0; at < std::ssize(ids); at += chunk) {
    const std::int64_t end = std::min<std::int64_t>(at + chunk, std::ssize(ids));
    result = step(executor, {.sequence = sequence,
                             .tokens = {ids.begin() + at, ids.begin() + end},
                             .want = end == std::ssize(ids) ? Want::logits : Want::nothing});
  }
  return result;
}

inline ItemResult decode(Executor& executor, SequenceId sequence, std::int32_t id) {
  return step(executor, {.sequence = sequence, .tokens = {id}, .want = Want::logits});
}

/// Log-probability of each token after the first.
inline std::vector<double> score(Executor& executor, const std::vector<std::int32_t>& ids,
                                 std::int64_t chunk = 512) {
  const SequenceId sequence = executor.kv().create();
  std::vector<double> all;
  const std::int64_t count = std::ssize(ids) - 1;
  for (std::int64_t at = 0; at < count; at += chunk) {
    const std::int64_t end = std::min(at + chunk, count);
    const ItemResult result =
        step(executor, {.sequence = sequence,
                        .tokens = {ids.begin() + at, ids.begin() + end},
                        .want = Want::nothing,
                        .targets = {ids.begin() + at + 1, ids.begin() + end + 1}});
    all.insert(all.end(), result.target_log_probs.begin(), result.target_log_probs.end());
  }
  executor.kv().free(sequence);
  return all;
}

}  // namespace gauntlet::engine
