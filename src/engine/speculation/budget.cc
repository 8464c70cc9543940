#include "engine/speculation/budget.h"

#include <algorithm>
#include <functional>
#include <iterator>

namespace gauntlet::engine::inline speculation {
namespace {

constexpr std::int64_t kLengths[] = {1, 3, 7};  // of a chain
constexpr double kFresh = 0.2;                  // weight of the newest time of a step
constexpr double kMemory = 0.9;                 // of what is known of acceptance, after each step
constexpr double kGuessed = 0.7;                // acceptance before anything was tried
constexpr double kPriorTries = 2;    // that all requests' acceptance counts for in each one's
constexpr double kUnknownRow = 0.2;  // cost of a row more, of a step of one, until measured
constexpr double kMargin = 1.02;     // a gain must show over noise
/// Plain steps before any guess, of which the fastest counts: the first of a process is slow.
constexpr std::int64_t kFirstPlainSteps = 2;
/// Steps with guesses, then one without: soon at first, so that one slow step misleads few.
constexpr std::int64_t kFirstPlainEvery = 4;
constexpr std::int64_t kPlainEvery = 64;
constexpr double kFaster = 0.5;  // weight of a plain step that took less than was known
constexpr std::int64_t kShortestPause = 8;
constexpr std::int64_t kLongestPause = 256;
/// Steps that a drafter which was shown nothing for a while is shown before it is tried.
constexpr std::int64_t kWarmUp = 8;
/// Steps in a row that it goes on behind: a plain one that is measured; where steps overlap, those
/// in front of it and behind it, too.
constexpr std::int64_t kShortGap = 1;
constexpr std::int64_t kShortOverlappedGap = 4;
/// What guessing may lose: a few steps at first, then a share of all time without. Together they
/// stay within 2% of any run of 400 steps.
constexpr double kFirstCreditSteps = 4;
constexpr double kCreditShare = 0.01;

/// A step that somebody else's work held up counts as one of twice the time.
double mixed(double old, double now) {
  return old == 0 ? now : old + kFresh * (std::min(now, 2 * old) - old);
}

/// Tokens beyond the first that so many guesses bring on average.
double expected_tokens(double probability, std::int64_t length) {
  double sum = 0;
  double all_right = 1;
  for (std::int64_t i = 0; i < length; ++i) sum += all_right *= probability;
  return sum;
}

bool was_asked(const TimedStep& step, std::size_t drafter) {
  return drafter < step.drafts.size() && step.drafts[drafter].longest > 0;
}

bool was_fed(const TimedStep& step, std::size_t drafter) {
  return std::ranges::find(step.fed, drafter) != step.fed.end();
}

double guessing_s(const TimedStep& step) {
  double seconds = step.feed_seconds;
  for (const TimedDrafts& drafts : step.drafts) seconds += drafts.seconds;
  return seconds;
}

}  // namespace

DraftBudget::DraftBudget(DraftLengths lengths, std::int64_t most,
                         const std::vector<Feeding>& drafters, const std::vector<TreeShape>& trees)
    : lengths_(lengths), most_(most), plain_every_(kFirstPlainEvery) {
  for (const Feeding feeding : drafters) drafters_.push_back({.feeding = feeding});
  for (std::size_t d = 0; d < trees.size(); ++d) drafters_[d].tree = trees[d];
}

void DraftBudget::Acceptance::add(std::int64_t drafted, std::int64_t accepted) {
  tried = tried * kMemory + static_cast<double>(std::min(drafted, accepted + 1));
  right = right * kMemory + static_cast<double>(accepted);
}

double DraftBudget::probability(std::size_t drafter, const Acceptance* own) const {
  const Acceptance& all = drafters_[drafter].accepted;
  const double common = (all.right + kGuessed) / (all.tried + 1);
  if (own == nullptr) return common;
  return (own->right + kPriorTries * common) / (own->tried + kPriorTries);
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

double DraftBudget::draft_cost_s(const Drafter& drafter, std::int64_t length) {
  const auto above = drafter.seconds.upper_bound(length);
  if (above == drafter.seconds.begin()) return 0;
  const auto [known, seconds] = *std::prev(above);
  return seconds * static_cast<double>(length) / static_cast<double>(known);
}

std::vector<std::int64_t> DraftBudget::lengths(const Drafter& drafter) const {
  std::vector<std::int64_t> lengths;
  if (drafter.tree.is_chain()) {
    for (const std::int64_t length : kLengths) lengths.push_back(std::min(length, most_));
    return lengths;
  }
  const std::int64_t width = drafter.tree.width;
  const std::int64_t most = std::min(most_, width * std::min(drafter.tree.depth, most_));
  for (std::int64_t length = width; length < most; length *= 2) lengths.push_back(length);
  lengths.push_back(most);
  return lengths;
}

std::int64_t DraftBudget::levels(const Drafter& drafter, std::int64_t length) {
  const std::int64_t width = drafter.tree.width;
  return std::min(drafter.tree.depth, (length + width - 1) / width);
}

double DraftBudget::gain_s(const Drafter& drafter, double probability, std::int64_t length) const {
  // In a batch all guess alike: a row's cost is that of its share in such a step.
  const double token_s = cost_s(now_) / static_cast<double>(now_);
  const double guess_s = draft_cost_s(drafter, length) + drafter.feed_s;
  return expected_tokens(probability, levels(drafter, length)) * token_s -
         kMargin * (static_cast<double>(length) * row_cost_s(now_ * length) + guess_s);
}

DraftBudget::Gain DraftBudget::best_gain(std::size_t index, const Acceptance* own) const {
  const Drafter& drafter = drafters_[index];
  const double p = probability(index, own);
  Gain best;
  for (const std::int64_t length : lengths(drafter)) {
    const double gain = gain_s(drafter, p, length);
    if (gain > best.seconds) best = {length, gain};
    // Who guesses at what price is seen with few guesses first.
    if (!drafter.seconds.contains(length)) break;
  }
  return best;
}

DraftBudget::Gain DraftBudget::best_gain(std::size_t drafter, std::int64_t id) const {
  const auto own = requests_.find(id);
  return best_gain(drafter, own == requests_.end() ? nullptr : &own->second[drafter]);
}

bool DraftBudget::can_guess(const Drafter& drafter) const {
  if (drafter.is_gone) return false;
  if (drafter.feeding == Feeding::none) return true;
  const std::int64_t short_gap = overlaps_ ? kShortOverlappedGap : kShortGap;
  return drafter.fed_steps >= (drafter.unfed_steps > short_gap ? kWarmUp : 1);
}

bool DraftBudget::seems_to_pay(std::size_t index) const {
  const Drafter& drafter = drafters_[index];
  if (drafter.seconds.empty()) return true;
  if (drafter.since_trial >= drafter.pause) {
    const double warm_up_s = kWarmUp * drafter.feed_s * static_cast<double>(now_);
    if (drafter.fed_steps > 0 || credit_s_ > warm_up_s) return true;
  }
  // Those that it guessed for are known; others are taken for one like all.
  if (!is_decoding_ || now_ > std::ssize(requests_)) return best_gain(index, nullptr).length > 0;
  return std::ranges::any_of(requests_, [&](const auto& request) {
    return best_gain(index, &request.second[index]).length > 0;
  });
}

void DraftBudget::decide_feeding() {
  for (std::size_t d = 0; d < drafters_.size(); ++d) {
    Drafter& drafter = drafters_[d];
    if (drafter.is_fed) {
      ++drafter.fed_steps;
    } else {
      drafter.unfed_steps = drafter.fed_steps > 0 ? 1 : drafter.unfed_steps + 1;
      drafter.fed_steps = 0;
    }
    if (drafter.feeding == Feeding::none) continue;
    const bool is_fixed = lengths_ == DraftLengths::fixed;
    if (!measures_plain_ && !is_fixed) drafter.pays = seems_to_pay(d);
    const bool may_lose = !has_credit_ || credit_s_ > 0;
    const bool is_wanted = is_fixed || (drafter.pays && may_lose && !measures_plain_);
    drafter.is_fed = is_wanted && !drafter.is_gone;
  }
}

/// Of those whose time has come, the one that waits longest.
void DraftBudget::pick_trial() {
  trial_.reset();
  if (!is_decoding_ || measures_plain_ || credit_s_ <= 0) return;
  std::int64_t most_late = 0;
  for (std::size_t d = 0; d < drafters_.size(); ++d) {
    const Drafter& drafter = drafters_[d];
    const std::int64_t late = drafter.since_trial - drafter.pause + 1;
    if (late <= most_late || !can_guess(drafter)) continue;
    trial_ = d;
    most_late = late;
  }
}

void DraftBudget::begin_step(std::int64_t requests) {
  now_ = std::max<std::int64_t>(1, requests);
  is_decoding_ = requests > 0;
  measures_plain_ = lengths_ == DraftLengths::measured && is_decoding_ &&
                    (!seconds_.contains(requests) || plain_steps_ < kFirstPlainSteps ||
                     since_plain_ >= plain_every_);
  decide_feeding();
  pick_trial();
}

std::vector<DraftPick> DraftBudget::picks(std::int64_t id) const {
  std::vector<DraftPick> picks;
  if (lengths_ == DraftLengths::fixed) {
    for (std::size_t d = 0; d < drafters_.size(); ++d) {
      if (!drafters_[d].is_gone) picks.push_back({d, most_});
    }
    return picks;
  }
  if (!is_decoding_ || measures_plain_ || credit_s_ <= 0) return picks;
  std::vector<double> gains;
  for (std::size_t d = 0; d < drafters_.size(); ++d) {
    if (!can_guess(drafters_[d])) continue;
    const Gain best = best_gain(d, id);
    if (best.length == 0) continue;
    const auto at = std::ranges::upper_bound(gains, best.seconds, std::greater());
    picks.insert(picks.begin() + (at - gains.begin()), {d, best.length});
    gains.insert(at, best.seconds);
  }
  if (trial_) {
    const auto tried = std::ranges::find(picks, *trial_, &DraftPick::drafter);
    if (tried == picks.end()) {
      picks.insert(picks.begin(), {*trial_, lengths(drafters_[*trial_]).front()});
    } else {
      std::rotate(picks.begin(), tried, tried + 1);
    }
  }
  return picks;
}

std::int64_t DraftBudget::length(std::int64_t id) const {
  std::int64_t longest = 0;
  for (const DraftPick& pick : picks(id)) longest = std::max(longest, pick.length);
  return longest;
}

void DraftBudget::add(std::int64_t id, std::size_t drafter, std::int64_t drafted,
                      std::int64_t accepted) {
  if (drafted == 0) return;
  auto& own = requests_[id];
  own.resize(drafters_.size());
  own[drafter].add(drafted, accepted);
  drafters_[drafter].accepted.add(drafted, accepted);
}

void DraftBudget::add(const TimedStep& step) {
  if (lengths_ == DraftLengths::fixed) return;
  learn(step);
  settle(step);
}

void DraftBudget::learn(const TimedStep& step) {
  overlaps_ = overlaps_ || step.fills;
  for (std::size_t d = 0; d < drafters_.size(); ++d) {
    Drafter& drafter = drafters_[d];
    drafter.since_trial = was_asked(step, d) ? 0 : drafter.since_trial + (step.requests > 0);
    if (was_asked(step, d)) {
      const TimedDrafts& drafts = step.drafts[d];
      double& seconds = drafter.seconds[drafts.longest];
      seconds = mixed(seconds, drafts.seconds / static_cast<double>(drafts.requests));
    }
    if (was_fed(step, d) && step.requests > 0 && step.prompt_tokens == 0) {
      drafter.feed_s =
          mixed(drafter.feed_s, step.feed_seconds / static_cast<double>(step.requests));
    }
  }
  if (step.requests > 0 && step.prompt_tokens == 0) learn_cost(step);
}

void DraftBudget::learn_cost(const TimedStep& step) {
  const bool is_bare = step.rows == step.requests;
  // Its time is that of a plain step only where nobody had to be shown it.
  if (is_bare && (step.fills || !step.fed.empty())) return;
  const double now = step.seconds - guessing_s(step);
  if (now <= 0) return;  // by other clocks its guesses took all of it
  double& seconds = seconds_[step.rows];
  if (is_bare && plain_steps_++ < kFirstPlainSteps && seconds > 0) {
    seconds = std::min(seconds, now);
  } else if (is_bare && now < seconds) {
    seconds += kFaster * (now - seconds);
  } else {
    seconds = mixed(seconds, now);
  }
}

/// The account of guessing: what a step's tokens would have taken without, less what they took.
void DraftBudget::settle(const TimedStep& step) {
  const double guess_s = guessing_s(step);
  const bool is_plain = step.rows == step.requests && guess_s == 0 && step.fed.empty() &&
                        std::ranges::none_of(step.drafts, [](const auto& d) { return d.longest; });
  if (!has_credit_ && step.requests > 0) {
    has_credit_ = true;
    credit_s_ += kFirstCreditSteps * step.seconds;
  }
  const double most = 2 * kFirstCreditSteps * cost_s(std::max<std::int64_t>(1, step.requests));
  const auto earn = [&](double seconds) {
    credit_s_ = std::min(std::max(most, credit_s_), credit_s_ + seconds);
  };
  const double token_s =
      cost_s(step.requests) / static_cast<double>(std::max<std::int64_t>(1, step.requests));
  if (is_plain) {
    // Behind a step with guesses, steps that overlap begin anew: that is part of its price.
    const bool begins_anew = step.fills && step.prompt_tokens == 0 && since_plain_ > 0;
    const double lost_s = step.seconds - static_cast<double>(step.tokens) * token_s;
    if (step.requests > 0 && step.prompt_tokens == 0 && since_plain_ > 0) {
      plain_every_ = std::min(2 * plain_every_, kPlainEvery);
      since_plain_ = 0;
    }
    return earn(begins_anew ? -lost_s : kCreditShare * step.seconds);
  }
  double gained_s = -guess_s;
  if (step.requests > 0) {
    const std::int64_t guesses = step.rows - step.requests;
    if (step.prompt_tokens == 0) {
      gained_s = static_cast<double>(step.tokens) * token_s - step.seconds;
      ++since_plain_;
    } else if (guesses > 0) {
      // What the step would have taken without them is not known: their rows are estimated.
      gained_s += static_cast<double>(step.tokens - step.requests) * token_s -
                  static_cast<double>(guesses) * row_cost_s(guesses);
    }
  }
  if (step.prompt_tokens > 0) gained_s += kCreditShare * (step.seconds - guess_s);
  earn(gained_s);
  if (trial_ && was_asked(step, *trial_)) end_trial(gained_s);
}

/// Worth another soon when it gained, and more than others promise, or it may yet with more
/// guesses.
void DraftBudget::end_trial(double gained_s) {
  double others_s = 0;
  for (std::size_t d = 0; d < drafters_.size(); ++d) {
    if (d != *trial_) others_s = std::max(others_s, best_gain(d, nullptr).seconds);
  }
  Drafter& tried = drafters_[*trial_];
  const bool is_known = std::ranges::all_of(
      lengths(tried), [&](std::int64_t length) { return tried.seconds.contains(length); });
  const bool pays = gained_s > 0 && (!is_known || gained_s > others_s * static_cast<double>(now_));
  tried.pause = pays ? kShortestPause : std::min(2 * tried.pause, kLongestPause);
}

}  // namespace gauntlet::engine::inline speculation
