// How many guesses a request gets: as many as pay by what was measured, its own acceptance and the
// time of steps with so many rows, and none where they do not.
#pragma once
#include <cstdint>
#include <map>
#include <unordered_map>

namespace gauntlet::engine::inline speculation {

enum class DraftLengths {
  measured,  // 0, 1, 3 or 7, whichever pays best
  fixed,     // always as many as may be
};

/// A step in which every request decoded, as it was timed. Rows of prompts cost otherwise.
struct TimedStep {
  std::int64_t requests = 0;
  std::int64_t rows = 0;    // tokens, guesses included
  std::int64_t tokens = 0;  // that came of it
  double seconds = 0;       // guessing included
  double draft_seconds = 0;
  std::int64_t longest_draft = 0;  // that was asked for
};

class DraftBudget {
 public:
  DraftBudget(DraftLengths lengths, std::int64_t most) : lengths_(lengths), most_(most) {}

  /// Before each step: so many requests decode.
  void begin_step(std::int64_t requests);
  /// Guesses that this one gets.
  std::int64_t length(std::int64_t id) const;
  /// Of `drafted` guesses the first `accepted` were right.
  void add(std::int64_t id, std::int64_t drafted, std::int64_t accepted);
  void add(const TimedStep& step);
  void end(std::int64_t id) { requests_.erase(id); }

  /// Seconds of a step with so many rows, by what was measured near it; 0: nothing was.
  double cost_s(std::int64_t rows) const;
  /// Seconds by which guessing may yet lose against none.
  double credit_s() const { return credit_s_; }

 private:
  /// Guesses whose turn came, and the right ones of them, the latest counting most.
  struct Acceptance {
    double tried = 0;
    double right = 0;
    void add(std::int64_t drafted, std::int64_t accepted);
  };
  /// That a guess is right when those before it are.
  double probability(std::int64_t id) const;
  /// Seconds that `length` guesses save by what is known; negative: they lose.
  double gain_s(double probability, std::int64_t length) const;
  /// Seconds that so many guesses of one request take; 0: nothing like it was measured.
  double draft_cost_s(std::int64_t length) const;
  double row_cost_s(std::int64_t rows_more) const;
  void settle(const TimedStep& step);

  const DraftLengths lengths_;
  const std::int64_t most_;
  std::unordered_map<std::int64_t, Acceptance> requests_;
  Acceptance all_;
  std::map<std::int64_t, double> seconds_;        // of a step, by rows
  std::map<std::int64_t, double> draft_seconds_;  // of a request's guesses, by their number
  std::int64_t now_ = 0;                          // requests that decode
  bool is_known_ = false;                         // what a step without guesses costs
  bool measures_plain_ = true;                    // this step goes without, to see what that costs
  bool explores_ = false;                         // this step tries what seemed not to pay
  std::int64_t since_plain_ = 0;
  std::int64_t since_trial_ = 0;
  std::int64_t pause_ = 8;  // steps between trials; twice as many after each that lost
  double credit_s_ = 0;
  bool has_credit_ = false;
};

}  // namespace gauntlet::engine::inline speculation
