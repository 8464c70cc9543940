#include "engine/ranks/rank_pulse.h"

namespace gauntlet::engine::inline on_ranks {

std::vector<RankCounters> RankPulse::counters() const {
  const std::lock_guard lock(mutex_);
  return counters_;
}

void RankPulse::beat() {
  if (!ask_) return;
  auto counters = ask_();
  last_ = Clock::now();
  const std::lock_guard lock(mutex_);
  counters_ = std::move(counters);
}

void RankPulse::beat_if_due() {
  if (Clock::now() - last_ >= every_) beat();
}

}  // namespace gauntlet::engine::inline on_ranks
