// CheckSchedule: which samples are verified, and which get inputs that changed in part only. Both
// are drawn at random, the first after the sample ran, so that no side can know.
#pragma once
#include <vector>

#include "core/random.h"

namespace gauntlet::lab::inline measure {

struct CheckBudget {
  int least_checks = 4;
  int least_traps = 3;
  int sure_samples = 16;    // of each side: as many come, unless the budget ends before
  double budget_s = 1;      // of measuring in this process
  double time_share = 0.5;  // of it that checks beyond the least may take
};

class CheckSchedule {
 public:
  CheckSchedule(CheckBudget budget, std::size_t sides, std::uint64_t seed)
      : budget_(budget), random_(seed), sides_(sides) {}

  void sample_took(double seconds);
  void check_took(double seconds);

  /// After a sample: shall its outputs be verified?
  bool draw_check(std::size_t side);
  /// After a sample: shall one follow whose inputs changed in part, and shall that be verified?
  bool draw_trap(std::size_t side);
  bool draw_trap_check(std::size_t side);
  /// What every side still lacks when measuring could end.
  bool complete(std::size_t side, bool traps) const;
  /// Draws yes until complete: measuring is over but for these.
  void hurry() { hurry_ = true; }

 private:
  struct Counts {
    int samples = 0, checks = 0, trap_checks = 0;
  };
  double affordable() const;
  double samples_in_budget() const;
  /// So many of the samples that are sure to come that `lacking` are likely among them; the last of
  /// these have to.
  double chance_of_least(const Counts& counts, int least, int have) const;
  bool draw(double chance);

  CheckBudget budget_;
  Random random_;
  std::vector<Counts> sides_;
  double sample_s_ = 0, check_s_ = 0;  // means
  int samples_ = 0, checks_ = 0;
  bool hurry_ = false;
};

}  // namespace gauntlet::lab::inline measure
