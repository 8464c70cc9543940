// What an executor exports beside its results, against what a probe sees of the same steps.
#pragma once
#include <cmath>

#include "engine/golden.h"
#include "engine/steps/routing_tape.h"

namespace gauntlet::engine {

inline std::vector<std::int32_t> export_ids(std::int32_t first, std::int32_t count) {
  std::vector<std::int32_t> ids;
  for (std::int32_t i = 0; i < count; ++i) ids.push_back((first + i * 61) % 4096);
  return ids;
}

/// Three sequences: the first and the last export; a prompt, then a step that verifies guesses.
inline std::vector<std::vector<ItemResult>> run_exporting(Executor& executor) {
  SequenceId sequences[3];
  for (SequenceId& sequence : sequences) sequence = executor.kv().create();
  std::vector<std::vector<ItemResult>> steps;
  for (const std::int32_t count : {20, 1, 4}) {
    std::vector<BatchItem> items;
    for (std::int32_t s = 0; s < 3; ++s) {
      items.push_back({.sequence = sequences[s],
                       .tokens = export_ids(100 * s + count, count + (count > 1 ? s : 0)),
                       .wants_normed = s == 2,
                       .exports = s != 1});
      check(executor.kv().reserve(items.back().sequence, std::ssize(items.back().tokens)),
            "the test ran out of pages");
    }
    if (count == 4) {
      items[0].num_drafts = 3;
      items[0].role = ItemRole::decode;
      items[0].rows = {{.token = 0, .wants_normed = true}, {.token = 2}};
    }
    steps.push_back(executor.collect(executor.submit(std::move(items))));
  }
  for (const SequenceId sequence : sequences) executor.kv().free(sequence);
  return steps;
}

/// Rows of a layer that a probe saw: those of the step's first and third item.
inline std::vector<float> exporting_rows(const std::vector<float>& seen, std::int64_t hidden,
                                         std::size_t item, std::int32_t count) {
  const std::int64_t grows = count > 1 ? 1 : 0;
  const std::int64_t first = item == 0 ? 0 : 2 * count + grows;
  const std::int64_t rows = item == 0 ? count : count + 2 * grows;
  return {seen.begin() + first * hidden, seen.begin() + (first + rows) * hidden};
}

/// The final norm as a textbook has it.
inline std::vector<float> scalar_norm(std::span<const float> x,
                                      const model::ModelWeights& weights) {
  double squares = 0;
  for (const float value : x) squares += double{value} * value;
  const double scale =
      1 / std::sqrt(squares / static_cast<double>(x.size()) + weights.config.rms_epsilon);
  std::vector<float> normed;
  for (std::size_t i = 0; i < x.size(); ++i) {
    normed.push_back(static_cast<float>(x[i] * scale * weights.final_norm[i]));
  }
  return normed;
}

/// Every layer's residuals in `steps` are those of `layers`, as a probe saw them step by step; and
/// normed rows are those of the last layer, within `relative` of their size.
inline void expect_exports(const std::vector<std::vector<ItemResult>>& steps,
                           const std::vector<std::vector<float>>& layers,
                           const std::vector<int>& exported, const model::ModelWeights& weights,
                           float relative) {
  const std::int64_t hidden = weights.config.hidden, depth = weights.config.num_layers;
  ASSERT_EQ(std::ssize(layers), 3 * depth);
  const std::int32_t counts[] = {20, 1, 4};
  const auto expect_normed = [&](std::span<const float> x, const std::vector<float>& normed) {
    const auto wanted = scalar_norm(x, weights);
    ASSERT_EQ(normed.size(), wanted.size());
    for (std::size_t i = 0; i < wanted.size(); ++i) {
      ASSERT_NEAR(normed[i], wanted[i], relative * std::max(1.0f, std::abs(wanted[i])));
    }
  };
  for (std::size_t s = 0; s < 3; ++s) {
    EXPECT_TRUE(steps[s][1].residuals.empty()) << "it did not ask";
    for (const std::size_t item : {0, 2}) {
      std::vector<float> wanted;
      for (const int layer : exported) {
        const auto rows = exporting_rows(
            layers[s * static_cast<std::size_t>(depth) + static_cast<std::size_t>(layer)], hidden,
            item, counts[s]);
        wanted.insert(wanted.end(), rows.begin(), rows.end());
      }
      EXPECT_EQ(steps[s][item].residuals, wanted) << "step " << s << ", item " << item;
    }
    const auto& last = layers[(s + 1) * static_cast<std::size_t>(depth) - 1];
    EXPECT_TRUE(steps[s][0].normed.empty());
    expect_normed(std::span(last).last(static_cast<std::size_t>(hidden)), steps[s][2].normed);
    if (s < 2) continue;
    expect_normed(std::span(last).first(static_cast<std::size_t>(hidden)),
                  steps[s][0].rows[0].normed);
    EXPECT_TRUE(steps[s][0].rows[1].normed.empty());
  }
}

}  // namespace gauntlet::engine
