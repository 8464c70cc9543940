#include "engine/speculation/budget.h"

#include <algorithm>
#include <cmath>
#include <iterator>

namespace gauntlet::engine::inline speculation {
namespace {

constexpr std::int64_t kLengths[] = {1, 3, 7};
constexpr double kFresh = 0.2;            // weight of the newest time of a step
constexpr double kMemory = 0.9;           // of what is known of acceptance, after each step
constexpr double kGuessed = 0.7;          // acceptance before anything was tried
constexpr double kPriorTries = 2;         // that all requests' acceptance counts for in each one's
constexpr double kUnknownRow = 0.2;       // cost of a row more, of a step of one, until measured
constexpr double kMargin = 1.02;          // a gain must show over noise
constexpr std::int64_t kPlainEvery = 64;  // steps with guesses, then one without
constexpr std::int64_t kLongestPause = 256;
/// What guessing may lose: a few steps at first, then a share of all time without. Together they
/// stay within 2% of any run of 400 steps.
constexpr double kFirstCreditSteps = 4;
constexpr double kCreditShare = 0.01;

double mixed(double old, double now) { return old == 0 ? now : old + kFresh * (now - old); }

/// Tokens beyond the first that so many guesses bring on average.
double expected_tokens(double probability, std::int64_t length) {
  double sum = 0;
  double all_right = 1;
  for (std::int64_t i = 0; i < length; ++i) sum += all_right *= probability;
  return sum;
}

}  // namespace

void DraftBudget::Acceptance::add(std::int64_t drafted, std::int64_t accepted) {
  tried = tried * kMemory + static_cast<double>(std::min(drafted, accepted + 1));
  right = right * kMemory + static_cast<double>(accepted);
}

double DraftBudget::probability(std::int64_t id) const {
  const double common = (all_.right + kGuessed) / (all_.tried + 1);
  const auto own = requests_.find(id);
  if (own == requests_.end()) return common;
  return (own->second.right + kPriorTries * common) / (own->second.tried + kPriorTries);
}

double DraftBudget::cost_s(std::int64_t rows) const {
  if (seconds_.empty()) return 0;
  const auto above = seconds_.lower_bound(rows);
  if (above != seconds_.end() && above->first == rows) return above->second;
  if (above == seconds_.begin()) return above->second;
  const auto [low_rows, low] = *std::prev(above);
  if (above == seconds_.end()) {
    const double row = kUnknownRow * low / static_cast<double>(low_rows);
    return low + row * static_cast<double>(rows - low_rows);
  }
  const double part =
      static_cast<double>(rows - low_rows) / static_cast<double>(above->first - low_rows);
  return low + part * (above->second - low);
}

double DraftBudget::row_cost_s(std::int64_t rows_more) const {
  const double more = cost_s(now_ + rows_more) - cost_s(now_);
  return std::max(0.0, more) / static_cast<double>(rows_more);
}

double DraftBudget::draft_cost_s(std::int64_t length) const {
  const auto above = draft_seconds_.upper_bound(length);
  if (above == draft_seconds_.begin()) return 0;
  const auto [known, seconds] = *std::prev(above);
  return seconds * static_cast<double>(length) / static_cast<double>(known);
}

double DraftBudget::gain_s(double probability, std::int64_t length) const {
  // In a batch all guess alike: a row's cost is that of its share in such a step.
  const double token_s = cost_s(now_) / static_cast<double>(now_);
  const double draft_s = draft_cost_s(length);
  return expected_tokens(probability, length) * token_s -
         kMargin * (static_cast<double>(length) * row_cost_s(now_ * length) + draft_s);
}

void DraftBudget::begin_step(std::int64_t requests) {
  now_ = requests;
  if (lengths_ == DraftLengths::fixed || requests == 0) return;
  is_known_ = seconds_.contains(requests);
  measures_plain_ = !is_known_ || since_plain_ >= kPlainEvery;
  explores_ = credit_s_ > 0 && since_trial_ >= pause_;
}

std::int64_t DraftBudget::length(std::int64_t id) const {
  if (lengths_ == DraftLengths::fixed) return most_;
  if (measures_plain_ || credit_s_ <= 0) return 0;
  const double p = probability(id);
  std::int64_t best = 0;
  double most_gained = 0;
  for (const std::int64_t wanted : kLengths) {
    const std::int64_t length = std::min(wanted, most_);
    const double gain = gain_s(p, length);
    if (gain > most_gained) {
      most_gained = gain;
      best = length;
    }
    // Who guesses at what price is seen with few guesses first.
    if (!draft_seconds_.contains(length)) break;
  }
  return best == 0 && explores_ ? std::min<std::int64_t>(1, most_) : best;
}

void DraftBudget::add(std::int64_t id, std::int64_t drafted, std::int64_t accepted) {
  if (drafted == 0) return;
  requests_[id].add(drafted, accepted);
  all_.add(drafted, accepted);
}

void DraftBudget::add(const TimedStep& step) {
  if (lengths_ == DraftLengths::fixed || step.requests == 0) return;
  const double verify_s = step.seconds - step.draft_seconds;
  double& seconds = seconds_[step.rows];
  seconds = mixed(seconds, verify_s);
  if (step.longest_draft > 0) {
    double& drafting = draft_seconds_[step.longest_draft];
    drafting = mixed(drafting, step.draft_seconds / static_cast<double>(step.requests));
  }
  settle(step);
}

/// The account of guessing: what a step's tokens would have taken without, less what they took.
void DraftBudget::settle(const TimedStep& step) {
  if (!has_credit_) {
    has_credit_ = true;
    credit_s_ = kFirstCreditSteps * step.seconds;
  }
  const double most = 2 * kFirstCreditSteps * cost_s(step.requests);
  if (step.rows == step.requests && step.longest_draft == 0) {
    since_plain_ = 0;
    ++since_trial_;
    credit_s_ = std::min(most, credit_s_ + kCreditShare * step.seconds);
    return;
  }
  ++since_plain_;
  const double token_s = cost_s(step.requests) / static_cast<double>(step.requests);
  const double gained_s = static_cast<double>(step.tokens) * token_s - step.seconds;
  credit_s_ = std::min(most, credit_s_ + gained_s);
  if (!explores_) return;
  since_trial_ = 0;
  pause_ = gained_s > 0 ? 8 : std::min(2 * pause_, kLongestPause);
}

}  // namespace gauntlet::engine::inline speculation
