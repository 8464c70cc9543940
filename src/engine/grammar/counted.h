// A rule that counts characters, as if it had its states once per count: which of those can still
// be finished, and which of them look alike.
#pragma once
#include <cstdint>
#include <vector>

#include "engine/grammar/automata.h"

namespace gauntlet::engine::grammar {

class CountedStates {
 public:
  using Count = std::uint32_t;
  static constexpr Count kMaxCount = 100'000'000;

  /// Of a rule that counts, with a bound of at most kMaxCount.
  CountedStates(const Dfa& rule, Work& work);

  std::size_t num_states() const { return after_character_.size(); }
  /// The highest count that is told apart: the bound, or without one the least that is enough.
  Count last() const { return last_; }

  /// Whether the rule can be finished from this state after so many characters.
  bool is_alive(Count count, std::uint32_t state) const { return run_of(count).alive[state]; }
  /// The count after going to a state, which may be more than last() where there is a bound.
  Count count_at(Count before, std::uint32_t state) const {
    if (!after_character_[state]) return before;
    return is_bounded_ || before < last_ ? before + 1 : before;
  }
  bool is_enough(Count count) const { return count >= enough_; }

  /// The least count from which the same texts of up to `horizon` bytes may follow, in any state.
  Count representative(Count count, std::size_t horizon) const;

  std::size_t bytes() const { return runs_.size() * (sizeof(Run) + num_states() / 8); }

 private:
  /// Counts in a row after which the same states are alive, all of them enough or none.
  struct Run {
    Count first = 0;
    Count last = 0;
    std::vector<bool> alive;
  };

  const Run& run_of(Count count) const;
  std::vector<bool> alive_at(const Dfa& rule, Count count, const std::vector<bool>* next,
                             Work& work) const;

  std::uint32_t first_;
  std::vector<bool> after_character_;
  Count enough_;
  Count last_;
  bool is_bounded_;
  std::vector<Run> runs_;  // the last first
};

}  // namespace gauntlet::engine::grammar
