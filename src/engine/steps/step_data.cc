#include "engine/steps/step_data.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "core/check.h"

namespace gauntlet::engine::inline steps {
namespace {

void check_tokens(const StepData& step, const StepData::Item& item, const StepLimits& limits) {
  for (std::int32_t i = 0; i < item.num_tokens; ++i) {
    const StepToken& token = step.tokens[static_cast<std::size_t>(item.first_token) + i];
    check(token.id < limits.vocab, "a token id is outside the vocabulary");
    check(!is_late_guess(token.id) || place_of_guess(token.id) < limits.guess_places,
          "a late guess has no place on this backend");
    check(token.position >= 0 && token.slot < step.table_stride * limits.page_tokens,
          "a token has no page to go to");
  }
}

/// A token sees itself, its parent, and what that sees; its place says how many tokens came before
/// it, its position how many of them it sees.
void check_tree(const StepData& step, const StepData::Item& item) {
  check(item.num_tokens <= kMostTreeTokens,
        "an item has a tree of more tokens than there are bits");
  for (std::int32_t i = 0; i < item.num_tokens; ++i) {
    const auto index = static_cast<std::size_t>(item.first_token) + i;
    const std::uint64_t seen = step.ancestors[index];
    const std::uint64_t others = seen & ~(std::uint64_t{1} << i);
    check(seen != others && seen >> i == 1, "a token of a tree sees itself last");
    const auto parent = static_cast<std::size_t>(item.first_token + std::bit_width(others) - 1);
    check(others == (others == 0 ? 0 : step.ancestors[parent]),
          "a token of a tree sees what its parent does");
    check(step.tokens[index].slot == item.context + i &&
              step.tokens[index].position == item.context + std::popcount(others),
          "a token of a tree is not at its depth, or not in its slot");
  }
}

void check_trees(const StepData& step, const StepLimits& limits) {
  check(limits.takes_trees || (step.ancestors.empty() && step.moves.empty()),
        "this backend computes chains of guesses, and no trees");
  if (step.ancestors.empty()) return;
  check(step.ancestors.size() == step.tokens.size(), "every token has its bits where one has");
  for (const StepData::Item& item : step.items) {
    if (step.is_tree(item)) check_tree(step, item);
  }
}

void check_rows(const StepData& step, const StepLimits& limits) {
  std::int32_t last = -1;
  for (const StepRow& row : step.rows) {
    check(row.token >= last && row.token < step.num_tokens(), "rows follow the order of tokens");
    last = row.token;
    check(row.target < limits.vocab, "a target is outside the vocabulary");
    if (row.mask < 0) continue;
    check(row.mask < std::ssize(step.masks), "a row names a mask that the step does not have");
    check(std::ssize(step.masks[static_cast<std::size_t>(row.mask)]) * 32 >= limits.vocab,
          "a mask has a bit for every token");
  }
}

}  // namespace

std::span<const std::int32_t> StepData::table(std::size_t item, KvGroup group) const {
  const auto stride = static_cast<std::size_t>(table_stride);
  return std::span(tables[static_cast<int>(group)]).subspan(item * stride, stride);
}

void check_step(const StepData& step, const StepLimits& limits) {
  check(!step.items.empty() && step.num_tokens() <= limits.tokens &&
            std::ssize(step.items) <= limits.items,
        "a step has no items, or more tokens or sequences than its backend was made for");
  std::int32_t next = 0;
  for (const StepData::Item& item : step.items) {
    check(item.num_tokens > 0 && item.first_token == next &&
              item.num_tokens <= step.num_tokens() - next,
          "an item's tokens follow the last one's, and the step has them");
    next += item.num_tokens;
    check(!item.exports || limits.export_layers > 0, "no layer of this backend exports residuals");
    check_tokens(step, item, limits);
  }
  check(next == step.num_tokens(), "every token belongs to an item");
  check(step.experts_per_token >= 0 && step.experts_per_token <= limits.experts_per_token,
        "this backend does not take so many experts for a token");
  for (const auto& table : step.tables) {
    check(std::ssize(table) == step.table_stride * std::ssize(step.items),
          "every item has a table of pages");
  }
  check_trees(step, limits);
  check_rows(step, limits);
}

std::int64_t StepData::exported_before(std::int64_t item) const {
  std::int64_t count = 0;
  for (const Item& one : std::span(items).first(static_cast<std::size_t>(item))) {
    count += one.exports ? one.num_tokens : 0;
  }
  return count;
}

Expected<void> check_export_layers(std::span<const int> layers, const model::ModelConfig& config) {
  int last = -1;
  for (const int layer : layers) {
    if (layer <= last || layer >= config.num_layers) {
      return Error{fmt::format("residuals cannot be exported after layer {}: layers ascend and "
                               "{} has {} of them, counted from 0",
                               layer, config.name, config.num_layers),
                   ErrorKind::wrong_use};
    }
    last = layer;
  }
  return {};
}

std::int64_t kv_bytes_seen(const StepData& step, const model::ModelConfig& config,
                           std::int64_t position_bytes) {
  const std::int64_t sliding_layers =
      std::ranges::count(config.attention, model::AttentionSpan::sliding);
  const std::int64_t full_layers = std::ssize(config.attention) - sliding_layers;
  std::int64_t positions = 0;
  for (const StepData::Item& item : step.items) {
    const std::int64_t seen_by_sliding =
        std::min<std::int64_t>(item.end(), config.sliding_window + item.num_tokens - 1);
    positions += full_layers * item.end() + sliding_layers * seen_by_sliding;
  }
  return positions * position_bytes;
}

}  // namespace gauntlet::engine::inline steps
