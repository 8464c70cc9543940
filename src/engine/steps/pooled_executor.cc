#include "engine/steps/pooled_executor.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "core/check.h"

namespace gauntlet::engine::inline steps {

PooledExecutor::PooledExecutor(const KvPoolConfig& pool, std::unique_ptr<Runner> runner)
    : pool_(pool), runner_(std::move(runner)) {}

std::int32_t PooledExecutor::resolved(std::int32_t id) const {
  if (!is_late(id) || is_late_guess(id)) return id;
  check(!in_flight_.empty(), "a late token needs a step under way");
  const auto& last_row = in_flight_.back().last_row;
  const auto item = static_cast<std::size_t>(row_of_late(id));
  check(item < last_row.size() && last_row[item] >= 0,
        "a late token names an item that samples none");
  return late_row(last_row[item]);
}

void PooledExecutor::add_tokens(const BatchItem& item, StepData& step) const {
  const std::int64_t count = std::ssize(item.tokens);
  const std::int64_t context = pool_.next_position(item.sequence);
  check(context + count <=
            std::ssize(pool_.table(item.sequence, KvGroup::full)) * pool_.config().page_tokens,
        "a batch item's positions were not reserved");
  const bool is_single = count == 1;
  step.items.push_back({.first_token = static_cast<std::int32_t>(step.num_tokens()),
                        .num_tokens = static_cast<std::int32_t>(count),
                        .context = static_cast<std::int32_t>(context),
                        .role = item.role.value_or(is_single ? ItemRole::decode : ItemRole::prompt),
                        .exports = item.exports});
  for (std::int64_t i = 0; i < count; ++i) {
    const auto position = static_cast<std::int32_t>(context + i);
    step.tokens.push_back({.id = resolved(item.tokens[i]), .position = position, .slot = position});
  }
  if (!item.parents.empty()) add_tree(item, step);
}

void PooledExecutor::add_tree(const BatchItem& item, StepData& step) {
  const StepData::Item& added = step.items.back();
  const std::int64_t known = added.num_tokens - item.num_drafts;
  check(std::ssize(item.parents) == item.num_drafts && added.num_tokens <= kMostTreeTokens,
        "guesses that branch have a parent each, and there are as many as have bits");
  step.ancestors.resize(step.tokens.size());
  std::uint64_t* seen = step.ancestors.data() + added.first_token;
  for (std::int64_t i = 0; i < added.num_tokens; ++i) {
    std::int64_t parent = i - 1;
    if (i >= known) {
      parent = known + item.parents[static_cast<std::size_t>(i - known)];
      check(parent >= known - 1 && parent < i, "a guess follows an earlier one");
    }
    seen[i] = (std::uint64_t{1} << i) | (parent < 0 ? 0 : seen[parent]);
    step.tokens[static_cast<std::size_t>(added.first_token + i)].position =
        added.context + std::popcount(seen[i]) - 1;
  }
}

void PooledExecutor::add_rows(BatchItem& item, std::size_t index, StepData& step,
                              InFlight& flight) {
  const std::int64_t count = std::ssize(item.tokens);
  const std::int32_t first = step.items.back().first_token;
  const auto mask_of = [&](std::vector<std::uint32_t>& allowed) {
    if (allowed.empty()) return std::int32_t{-1};
    step.masks.push_back(std::move(allowed));
    return static_cast<std::int32_t>(step.masks.size()) - 1;
  };
  auto wish = item.rows.begin();
  for (std::int64_t t = 0; t < count; ++t) {
    const bool is_wished = wish != item.rows.end() && wish->token == t;
    const bool is_last = t == count - 1 && item.want != Want::nothing;
    const bool is_scored = !item.targets.empty();
    if (!is_wished && !is_last && !is_scored) continue;
    StepRow row{.token = static_cast<std::int32_t>(first + t),
                .target = is_scored ? item.targets[t] : -1};
    RowUse use{.item = index, .target = is_scored ? t : -1, .is_last = is_last};
    if (is_wished) {
      row.mask = mask_of(wish->allowed);
      row.want = wish->want;
      row.wants_normed = wish->wants_normed;
      row.sampling = wish->sampling;
      use.wish = wish++ - item.rows.begin();
    } else if (is_last) {
      row.mask = mask_of(item.allowed);
      row.want = item.want;
      row.wants_normed = item.wants_normed;
      row.sampling = item.sampling;
      flight.last_row.back() = std::ssize(step.rows);
    }
    step.rows.push_back(row);
    flight.uses.push_back(use);
  }
  check(wish == item.rows.end(), "wanted rows are of tokens before the last, in their order");
}

void PooledExecutor::add_tables(const std::vector<BatchItem>& items, StepData& step) const {
  const std::int64_t page_tokens = pool_.config().page_tokens;
  for (const StepData::Item& item : step.items) {
    step.table_stride =
        std::max<std::int64_t>(step.table_stride, (item.end() + page_tokens - 1) / page_tokens);
  }
  for (const KvGroup group : {KvGroup::full, KvGroup::sliding}) {
    auto& tables = step.tables[static_cast<int>(group)];
    tables.assign(items.size() * static_cast<std::size_t>(step.table_stride), kNoPage);
    for (std::size_t i = 0; i < items.size(); ++i) {
      const auto pages = pool_.table(items[i].sequence, group);
      const auto shown = std::min<std::int64_t>(std::ssize(pages), step.table_stride);
      std::copy_n(
          pages.begin(), shown,
          tables.begin() + std::ssize(tables) / std::ssize(items) * static_cast<std::ptrdiff_t>(i));
    }
  }
}

StepData PooledExecutor::flatten(std::vector<BatchItem>& items, InFlight& flight) const {
  StepData step;
  for (std::size_t i = 0; i < items.size(); ++i) {
    BatchItem& item = items[i];
    check(!item.tokens.empty(), "a batch item has no tokens");
    check(item.targets.empty() || item.targets.size() == item.tokens.size(),
          "a batch item has as many targets as tokens, or none");
    check(item.num_drafts >= 0 && item.num_drafts <= std::ssize(item.tokens),
          "a batch item has no more guesses than tokens");
    check(item.experts_per_token == items.front().experts_per_token,
          "all items of a step take as many experts for a token");
    check(item.experts_per_token == 0 || item.num_drafts == std::ssize(item.tokens),
          "what fewer experts computed is not committed");
    flight.last_row.push_back(-1);
    flight.items.push_back({.sequence = item.sequence,
                            .num_tokens = std::ssize(item.tokens),
                            .num_drafts = item.num_drafts,
                            .exports = item.exports,
                            .num_targets = item.targets.size(),
                            .num_wishes = item.rows.size()});
    add_tokens(item, step);
    add_rows(item, i, step, flight);
  }
  if (!step.ancestors.empty()) step.ancestors.resize(step.tokens.size());
  add_tables(items, step);
  if (!items.empty()) step.experts_per_token = items.front().experts_per_token;
  step.residuals_stay = std::ranges::all_of(items, &BatchItem::residuals_stay);
  return step;
}

Ticket PooledExecutor::submit(std::vector<BatchItem> items) {
  check(std::ssize(in_flight_) < runner_->most_in_flight(),
        "a step was submitted before an earlier one was collected");
  InFlight flight;
  StepData step = flatten(items, flight);
  check_step(step, runner_->limits());
  for (const ItemPart& item : flight.items) pool_.advance(item.sequence, item.num_tokens);
  const std::vector<PageCopy> copies = pool_.take_copies();
  const std::vector<RowMove> moves = pool_.take_moves();
  step.copies = copies;
  step.moves = moves;
  try {
    flight.ticket = runner_->start(std::move(step));
  } catch (...) {
    // Nothing is under way: the next step can come.
    retract(flight);
    pool_.return_copies(copies);
    pool_.return_moves(moves);
    throw;
  }
  in_flight_.push_back(std::move(flight));
  return in_flight_.back().ticket;
}

void PooledExecutor::retract(const InFlight& flight) {
  for (const ItemPart& item : flight.items) pool_.retract(item.sequence, item.num_tokens);
}

PooledExecutor::InFlight PooledExecutor::take(Ticket ticket) {
  check(!in_flight_.empty() && in_flight_.front().ticket == ticket, "no such step to collect");
  InFlight flight = std::move(in_flight_.front());
  in_flight_.pop_front();
  retract(flight);
  return flight;
}

void PooledExecutor::abandon(Ticket ticket) {
  take(ticket);
  try {
    runner_->finish(ticket);
  } catch (const std::exception&) {
    // Whatever became of it, nobody asks.
  }
}

void PooledExecutor::add_residuals(const InFlight& flight, std::vector<ItemResult>& results) const {
  if (runner_->last_residuals_stayed()) {
    std::int64_t row = 0;
    for (std::size_t i = 0; i < results.size(); ++i) {
      if (flight.items[i].exports) results[i].device_row = row;
      row += flight.items[i].num_tokens;
    }
    return;
  }
  const std::span<const float> all = runner_->last_residuals();
  if (all.empty()) return;
  const std::int64_t layers = runner_->limits().export_layers, hidden = config().hidden;
  const std::int64_t layer_numbers = std::ssize(all) / layers;
  std::int64_t first = 0;  // number of the item's in a layer
  for (std::size_t i = 0; i < results.size(); ++i) {
    if (!flight.items[i].exports) continue;
    const std::int64_t numbers = flight.items[i].num_tokens * hidden;
    for (std::int64_t l = 0; l < layers; ++l) {
      const auto from = all.begin() + l * layer_numbers + first;
      results[i].residuals.insert(results[i].residuals.end(), from, from + numbers);
    }
    first += numbers;
  }
}

std::vector<ItemResult> PooledExecutor::collect(Ticket ticket) {
  const InFlight flight = take(ticket);
  std::vector<RowResult> rows = runner_->finish(ticket);
  std::vector<ItemResult> results(flight.items.size());
  for (std::size_t i = 0; i < results.size(); ++i) {
    results[i].target_log_probs.resize(flight.items[i].num_targets);
    results[i].rows.resize(flight.items[i].num_wishes);
  }
  for (std::size_t r = 0; r < rows.size(); ++r) {
    const RowUse& use = flight.uses[r];
    ItemResult& result = results[use.item];
    if (use.target >= 0) {
      result.target_log_probs[use.target] = rows[r].target_log_probability;
    }
    if (use.is_last) {
      result.token = rows[r].token;
      result.log_probability = rows[r].log_probability;
      result.logits = std::move(rows[r].logits);
      result.normed = std::move(rows[r].normed);
    } else if (use.wish >= 0) {
      result.rows[use.wish] = std::move(rows[r]);
    }
  }
  add_residuals(flight, results);
  for (const ItemPart& item : flight.items) {
    pool_.commit(item.sequence, item.num_tokens - item.num_drafts);
  }
  return results;
}

}  // namespace gauntlet::engine::inline steps
