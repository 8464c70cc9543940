#include "server/http/body_budget.h"

#include <utility>

namespace gauntlet::server::inline http {
namespace {

double seconds_between(BodyBudget::Clock::time_point from, BodyBudget::Clock::time_point to) {
  return std::chrono::duration<double>(to - from).count();
}

}  // namespace

BodyBudget::Share::Share(BodyBudget& budget, std::function<void()> on_drop)
    : budget_(budget), on_drop_(std::move(on_drop)) {}

/// A rate over less than the grace says nothing: until then that of the time before holds, or none.
/// What came fast before a longer pause says nothing of the rest.
bool BodyBudget::Share::is_slow(Clock::time_point now) const {
  if (is_complete_) return false;
  if (seconds_between(grown_at_, now) >= budget_.limits_.grace_s) return true;
  const double elapsed_s = seconds_between(mark_, now);
  const double rate = elapsed_s < budget_.limits_.grace_s
                          ? rate_before_
                          : static_cast<double>(bytes_ - mark_bytes_) / elapsed_s;
  return rate < budget_.limits_.slow_bytes_per_s;
}

bool BodyBudget::Share::grow_to(std::uint64_t bytes, Clock::time_point now) {
  const std::lock_guard lock(budget_.mutex_);
  if (was_dropped_) return false;
  if (bytes <= bytes_) return true;
  const std::uint64_t more = bytes - bytes_;
  while (more > budget_.limits_.bytes - budget_.used_bytes_) {
    if (!budget_.drop_one(*this, now)) return false;
  }
  const bool is_first = budget_.shares_.insert(this).second;
  const double elapsed_s = seconds_between(mark_, now);
  if (is_first || elapsed_s >= budget_.limits_.grace_s) {
    if (!is_first) rate_before_ = static_cast<double>(bytes - mark_bytes_) / elapsed_s;
    mark_ = now;
    mark_bytes_ = bytes;
  }
  budget_.used_bytes_ += more;
  bytes_ = bytes;
  grown_at_ = now;
  return true;
}

bool BodyBudget::drop_one(const Share& asking, Clock::time_point now) {
  Share* largest = nullptr;
  for (Share* share : shares_) {
    if (share == &asking || !share->is_slow(now)) continue;
    if (largest == nullptr || share->bytes_ > largest->bytes_) largest = share;
  }
  if (largest == nullptr) return false;
  used_bytes_ -= std::exchange(largest->bytes_, 0);
  largest->was_dropped_ = true;
  shares_.erase(largest);
  largest->on_drop_();
  return true;
}

bool BodyBudget::Share::complete() {
  const std::lock_guard lock(budget_.mutex_);
  is_complete_ = true;
  return !was_dropped_;
}

void BodyBudget::Share::release() {
  const std::lock_guard lock(budget_.mutex_);
  budget_.used_bytes_ -= std::exchange(bytes_, 0);
  budget_.shares_.erase(this);
}

bool BodyBudget::Share::was_dropped() const {
  const std::lock_guard lock(budget_.mutex_);
  return was_dropped_;
}

}  // namespace gauntlet::server::inline http
