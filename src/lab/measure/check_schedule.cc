#include "lab/measure/check_schedule.h"

#include <algorithm>

namespace gauntlet::lab::inline measure {
namespace {

// Half of the samples at most: a check displaces what the caches hold.
constexpr double kMostChecked = 0.5;
constexpr double kTraps = 0.1;
// Of each side, in the three blocks that are taken however slow it is.
constexpr double kFewestSamples = 6;

double mean(double mean, int count, double value) { return mean + (value - mean) / count; }

}  // namespace

void CheckSchedule::sample_took(double seconds) {
  sample_s_ = mean(sample_s_, ++samples_, seconds);
}

void CheckSchedule::check_took(double seconds) { check_s_ = mean(check_s_, ++checks_, seconds); }

double CheckSchedule::affordable() const {
  if (samples_ == 0 || sample_s_ <= 0 || check_s_ <= 0) return kMostChecked;
  return std::min(kMostChecked, budget_.time_share * sample_s_ / check_s_);
}

double CheckSchedule::samples_in_budget() const {
  if (sample_s_ <= 0) return budget_.sure_samples;
  return budget_.budget_s / sample_s_ / static_cast<double>(sides_.size());
}

double CheckSchedule::chance_of_least(const Counts& counts, int least, int have) const {
  const int lacking = least - have;
  if (lacking <= 0) {
    // A side that saw the least go by must not feel safe.
    return least / std::max<double>(budget_.sure_samples, samples_in_budget());
  }
  if (hurry_) return 1;
  const double most = budget_.sure_samples;
  const double sure = std::clamp(samples_in_budget(), std::min(kFewestSamples, most), most);
  const double left = sure - counts.samples + 1;
  if (left <= lacking) return 1;
  return std::min(kMostChecked, 1.5 * least / sure);
}

bool CheckSchedule::draw(double chance) {
  constexpr std::uint64_t kSteps = 1 << 30;
  return static_cast<double>(random_.next_below(kSteps)) < chance * kSteps;
}

bool CheckSchedule::draw_check(std::size_t side) {
  Counts& counts = sides_[side];
  ++counts.samples;
  const bool yes =
      draw(std::max(affordable(), chance_of_least(counts, budget_.least_checks, counts.checks)));
  counts.checks += yes;
  return yes;
}

bool CheckSchedule::draw_trap(std::size_t side) {
  const Counts& counts = sides_[side];
  const bool lacks = counts.trap_checks < budget_.least_traps;
  return draw(
      lacks ? std::max(kTraps, chance_of_least(counts, budget_.least_traps, counts.trap_checks))
            : kTraps);
}

bool CheckSchedule::draw_trap_check(std::size_t side) {
  Counts& counts = sides_[side];
  const bool yes = draw(counts.trap_checks < budget_.least_traps ? 1 : affordable());
  counts.trap_checks += yes;
  return yes;
}

bool CheckSchedule::complete(std::size_t side, bool traps) const {
  return sides_[side].checks >= budget_.least_checks &&
         (!traps || sides_[side].trap_checks >= budget_.least_traps);
}

}  // namespace gauntlet::lab::inline measure
