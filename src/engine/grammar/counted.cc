#include "engine/grammar/counted.h"

#include <algorithm>

#include "core/check.h"

namespace gauntlet::engine::grammar {

CountedStates::CountedStates(const Dfa& rule, Work& work)
    : first_(rule.counted->first),
      after_character_(rule.counted->after_character),
      enough_(static_cast<Count>(rule.counted->times.min)),
      last_(static_cast<Count>(rule.counted->times.max.value_or(rule.counted->times.min))),
      is_bounded_(rule.counted->times.max.has_value()) {
  check(rule.counted->times.max.value_or(0) <= kMaxCount && rule.counted->times.min <= kMaxCount,
        "counts are bounded");
  // Downwards, for what is alive depends on what is alive one character on. Once a count is like
  // the one above it, all are down to where they stop being enough.
  std::vector<bool> alive = alive_at(rule, last_, nullptr, work);
  runs_.push_back({.first = last_, .last = last_, .alive = alive});
  for (std::int64_t count = std::int64_t{last_} - 1; count >= 0; --count) {
    const auto at = static_cast<Count>(count);
    std::vector<bool> here = alive_at(rule, at, &alive, work);
    Run& above = runs_.back();
    if (here == above.alive && is_enough(at) == is_enough(above.first)) {
      above.first = is_enough(at) ? enough_ : 0;
      count = above.first;
    } else {
      work.spend(4 + num_states() / 8);
      runs_.push_back({.first = at, .last = at, .alive = here});
    }
    alive = std::move(here);
  }
}

std::vector<bool> CountedStates::alive_at(const Dfa& rule, Count count,
                                          const std::vector<bool>* next, Work& work) const {
  std::vector<bool> alive(num_states(), false);
  const auto leads_on = [&](const Dfa::Edge& edge) {
    const std::uint32_t target = edge.target - first_;
    if (target == num_states()) return is_enough(count);  // the rule's end
    if (!after_character_[target]) return static_cast<bool>(alive[target]);
    if (next != nullptr) return static_cast<bool>((*next)[target]);
    return !is_bounded_ && alive[target];  // the last count is that of all above it
  };
  // A character has few bytes, and its states mostly come before those they lead to.
  for (bool changed = true; changed;) {
    changed = false;
    for (std::size_t state = num_states(); state-- > 0;) {
      if (alive[state]) continue;
      const auto& edges = rule.states[first_ + state].edges;
      work.spend(1 + edges.size());
      if (std::any_of(edges.begin(), edges.end(), leads_on)) alive[state] = changed = true;
    }
  }
  return alive;
}

const CountedStates::Run& CountedStates::run_of(Count count) const {
  return *std::partition_point(runs_.begin(), runs_.end(),
                               [&](const Run& run) { return run.first > count; });
}

CountedStates::Count CountedStates::representative(Count count, std::size_t horizon) const {
  const Run& run = run_of(count);
  return count + horizon <= run.last ? run.first : count;
}

}  // namespace gauntlet::engine::grammar
