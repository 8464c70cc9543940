// Who guesses for a request, and how far: whoever and as far as pays by what was measured of
// acceptance, of the time that guessing takes, and of steps with so many rows; nobody where nobody
// does.
#pragma once
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <unordered_map>
#include <vector>

#include "engine/speculation/draft.h"

namespace gauntlet::engine::inline speculation {

enum class DraftLengths {
  measured,  // 0, 1, 3 or 7, or levels of a tree, 0, 1, 2, 4 and so on, whichever pays best
  fixed,     // always as many as may be
};

/// What a drafter has to be shown, so that it can guess.
enum class Feeding {
  none,
  residuals,  // of all steps before, which cost time whether it guesses or not
};

/// What one drafter did for a step.
struct TimedDrafts {
  double seconds = 0;
  std::int64_t requests = 0;  // that it was asked for
  std::int64_t longest = 0;   // guesses, as asked for
};

/// A step as it was timed. Where it has prompts, too, its time says nothing of rows.
struct TimedStep {
  std::int64_t requests = 0;             // that decode
  std::int64_t rows = 0;                 // their tokens, guesses included
  std::int64_t tokens = 0;               // that came of it
  double seconds = 0;                    // guessing and feeding included
  std::vector<TimedDrafts> drafts = {};  // by drafter; fewer: the others were not asked
  double feed_seconds = 0;               // of drafters that must be shown what steps compute
  std::vector<std::size_t> fed = {};     // drafters that are shown what it computed
  std::int64_t prompt_tokens = 0;
  /// Where steps overlap: the next one was started behind it, and itself behind none. It took
  /// longer than those that follow.
  bool fills = false;
};

/// A drafter to be asked for some guesses.
struct DraftPick {
  std::size_t drafter = 0;
  std::int64_t length = 0;
};

class DraftBudget {
 public:
  /// `trees`: of those drafters that fan out, by drafter.
  DraftBudget(DraftLengths lengths, std::int64_t most, const std::vector<Feeding>& drafters = {{}},
              const std::vector<TreeShape>& trees = {});

  /// Before each step: so many requests decode in it.
  void begin_step(std::int64_t requests);
  /// Whom to ask for this one's guesses, in order: the next where those before have none.
  std::vector<DraftPick> picks(std::int64_t id) const;
  /// The most guesses of those.
  std::int64_t length(std::int64_t id) const;
  /// Whether this one is shown what the step computes.
  bool feeds(std::size_t drafter) const { return drafters_[drafter].is_fed; }

  /// Of `drafted` guesses of that drafter, or levels of them, the first `accepted` were right.
  void add(std::int64_t id, std::size_t drafter, std::int64_t drafted, std::int64_t accepted);
  void add(const TimedStep& step);
  void end(std::int64_t id) { requests_.erase(id); }
  /// This drafter is asked no more.
  void drop(std::size_t drafter) { drafters_[drafter].is_gone = true; }

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
  struct Drafter {
    Feeding feeding = Feeding::none;
    TreeShape tree = {};
    Acceptance accepted;                     // of all requests
    std::map<std::int64_t, double> seconds;  // of a request's guesses, by their number
    double feed_s = 0;                       // of a request's tokens in a step
    std::int64_t since_trial = 0;            // steps that it was not asked in
    std::int64_t pause = 8;  // steps between trials; twice as many after each that lost
    bool pays = true;        // as far as is known, or its time to be tried has come
    bool is_fed = false;     // this step
    bool is_gone = false;
    std::int64_t fed_steps = 0;    // before this one, without a break
    std::int64_t unfed_steps = 0;  // before those
  };
  struct Gain {
    std::int64_t length = 0;
    double seconds = 0;  // that so many guesses save by what is known
  };
  using Requests = std::unordered_map<std::int64_t, std::vector<Acceptance>>;

  /// That a guess is right when those before it are; of a request, or of any.
  double probability(std::size_t drafter, const Acceptance* own) const;
  /// The numbers of guesses that are chosen from; of a tree, whole levels.
  std::vector<std::int64_t> lengths(const Drafter& drafter) const;
  static std::int64_t levels(const Drafter& drafter, std::int64_t length);
  double gain_s(const Drafter& drafter, double probability, std::int64_t length) const;
  Gain best_gain(std::size_t drafter, const Acceptance* own) const;
  Gain best_gain(std::size_t drafter, std::int64_t id) const;
  /// Seconds that so many guesses of one request take; 0: nothing like it was measured.
  static double draft_cost_s(const Drafter& drafter, std::int64_t length);
  double row_cost_s(std::int64_t rows_more) const;
  /// Whether it has seen enough of what was computed to be asked.
  bool can_guess(const Drafter& drafter) const;
  bool seems_to_pay(std::size_t drafter) const;
  void decide_feeding();
  void pick_trial();
  void learn(const TimedStep& step);
  void learn_cost(const TimedStep& step);
  void settle(const TimedStep& step);
  void end_trial(double gained_s);

  const DraftLengths lengths_;
  const std::int64_t most_;
  std::vector<Drafter> drafters_;
  Requests requests_;
  std::map<std::int64_t, double> seconds_;  // of a step, by rows
  std::int64_t now_ = 1;                    // requests that decode; one where none does
  bool is_decoding_ = false;
  bool measures_plain_ = false;       // this step goes without, to see what that costs
  std::optional<std::size_t> trial_;  // who is tried in this step though it seemed not to pay
  bool overlaps_ = false;             // plain steps do, as far as was seen
  std::int64_t plain_steps_ = 0;
  std::int64_t plain_every_ = 0;  // steps with guesses, then one without
  std::int64_t since_plain_ = 0;
  double credit_s_ = 0;
  bool has_credit_ = false;
};

}  // namespace gauntlet::engine::inline speculation
