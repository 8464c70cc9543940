#include "study/bench/time_budget.h"

#include <algorithm>
#include <cstddef>

#include "core/check.h"

namespace gauntlet::study::inline bench {
namespace {

/// Below this part of its share, a cell's repetitions say too little to be worth their set-up.
constexpr double kLeastShare = 0.2;

}  // namespace

TimeBudget::TimeBudget(std::vector<CellTime> cells, const TimeLimits& limits)
    : cells_(std::move(cells)), ended_(cells_.size()), limits_(limits) {
  for (const CellTime& cell : cells_) weights_ += cell.weight;
}

double TimeBudget::setup_s(std::size_t cell) const {
  const CellTime& own = cells_[cell];
  const auto found = learned_.find(own.kind);
  const Learned& from = found == learned_.end() ? all_ : found->second;
  return from.guessed_s > 0 ? own.setup_s * from.took_s / from.guessed_s : own.setup_s;
}

double TimeBudget::share_s(std::size_t cell) const {
  return weights_ > 0 ? limits_.repeat_s * cells_[cell].weight / weights_ : 0;
}

std::optional<double> TimeBudget::allot(std::size_t cell) const {
  const double share = share_s(cell), left = limits_.end_s - spent_s_;
  if (limits_.end_s <= 0) return share;
  const Rank rank = cells_[cell].rank;
  if (rank != Rank::layers && setup_s(cell) + kLeastShare * share > left) return std::nullopt;
  // What may go without does not keep the others short; the options must not go without.
  const Rank last = std::max(rank, Rank::company);
  double free = left, weights = 0;
  for (std::size_t i = 0; i < cells_.size(); ++i) {
    if (ended_[i] || cells_[i].rank > last) continue;
    free -= setup_s(i);
    weights += cells_[i].weight;
  }
  if (weights <= 0) return share;
  return std::clamp(free * cells_[cell].weight / weights, kLeastShare * share, share);
}

void TimeBudget::finish(std::size_t cell, double took_s) {
  check(!ended_[cell], "a cell ends once");
  const double setup = std::max(0.0, took_s - allot(cell).value_or(0));
  spent_s_ += took_s;
  ended_[cell] = true;
  for (Learned* into : {&learned_[cells_[cell].kind], &all_}) {
    into->guessed_s += cells_[cell].setup_s;
    into->took_s += setup;
  }
}

double TimeBudget::left_s() const {
  double seconds = 0;
  for (std::size_t i = 0; i < cells_.size(); ++i) {
    if (!ended_[i]) seconds += setup_s(i) + share_s(i);
  }
  return limits_.end_s > 0 ? std::min(seconds, std::max(0.0, limits_.end_s - spent_s_)) : seconds;
}

}  // namespace gauntlet::study::inline bench
