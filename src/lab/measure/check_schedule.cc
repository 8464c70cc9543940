#include "lab/measure/check_schedule.h"

#include <algorithm>

namespace gauntlet::lab::inline measure {
namespace {

// Half of the samples at most: a check displaces what the caches hold.
constexpr double kMostChecked = 0.5;
constexpr double kTraps = 0.1;

double mean(double mean, int count, double value) { return mean + (value - mean) / count; }

}  // namespace

void CheckSchedule::sample_took(double seconds) {
  sample_s_ = mean(sample_s_, ++samples_, seconds);
}

void CheckSchedule::check_took(double seconds) { check_s_ = mean(check_s_, ++checks_, seconds); }

/// As many as their time share allows, and so many that the least are likely among the samples
/// that fit into the budget.
double CheckSchedule::chance() const {
  if (samples_ == 0 || sample_s_ <= 0) return kMostChecked;
  const double affordable = check_s_ > 0 ? budget_.time_share * sample_s_ / check_s_ : kMostChecked;
  const double expected_samples =
      std::max(8.0, budget_.budget_s / sample_s_ / static_cast<double>(sides_.size()));
  const double needed = 1.5 * budget_.least_checks / expected_samples;
  return std::clamp(std::max(affordable, needed), 0.0, kMostChecked);
}

bool CheckSchedule::draw(double chance) {
  constexpr std::uint64_t kSteps = 1 << 30;
  return static_cast<double>(random_.next_below(kSteps)) < chance * kSteps;
}

bool CheckSchedule::draw_check(std::size_t side) {
  const bool yes = draw(hurry_ && sides_[side].checks < budget_.least_checks ? 1 : chance());
  sides_[side].checks += yes;
  return yes;
}

bool CheckSchedule::draw_trap(std::size_t side) {
  const bool yes = draw(hurry_ && sides_[side].trap_checks < budget_.least_traps ? 1 : kTraps);
  sides_[side].traps += yes;
  return yes;
}

bool CheckSchedule::draw_trap_check(std::size_t side) {
  const bool yes = draw(sides_[side].trap_checks < budget_.least_traps ? 1 : chance());
  sides_[side].trap_checks += yes;
  return yes;
}

bool CheckSchedule::complete(std::size_t side, bool traps) const {
  return sides_[side].checks >= budget_.least_checks &&
         (!traps || sides_[side].trap_checks >= budget_.least_traps);
}

}  // namespace gauntlet::lab::inline measure
