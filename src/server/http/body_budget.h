// What the bodies of all requests under way may take together: a limit per request alone would let
// many clients hold many times that. When room is short, who sends too slowly makes it.
#pragma once
#include <chrono>
#include <cstdint>
#include <functional>
#include <limits>
#include <mutex>
#include <unordered_set>

namespace gauntlet::server::inline http {

class BodyBudget {
 public:
  using Clock = std::chrono::steady_clock;
  struct Limits {
    std::uint64_t bytes = 0;
    double slow_bytes_per_s = 0;  // who sends less than this may be dropped for others
    double grace_s = 1;           // for which a pause is nothing
  };
  explicit BodyBudget(Limits limits) : limits_(limits) {}

  /// One body's part of the budget, given back once it is parsed.
  class Share {
   public:
    /// `on_drop` is called, from any thread and under a lock, when the share went to others.
    Share(BodyBudget& budget, std::function<void()> on_drop);
    ~Share() { release(); }
    Share(const Share&) = delete;
    Share& operator=(const Share&) = delete;

    /// What has come so far. False, with nothing changed, when all bodies together would take too
    /// much, or when this one was dropped.
    [[nodiscard]] bool grow_to(std::uint64_t bytes) { return grow_to(bytes, Clock::now()); }
    [[nodiscard]] bool grow_to(std::uint64_t bytes, Clock::time_point now);
    /// The body is whole: from here on it waits for this server, and is not dropped. False when it
    /// was before.
    [[nodiscard]] bool complete();
    void release();
    bool was_dropped() const;

   private:
    friend class BodyBudget;
    bool is_slow(Clock::time_point now) const;

    BodyBudget& budget_;
    const std::function<void()> on_drop_;
    // Under the budget's lock:
    std::uint64_t bytes_ = 0;
    bool is_complete_ = false;
    bool was_dropped_ = false;
    Clock::time_point grown_at_;
    Clock::time_point mark_;  // where the time began over which its rate is taken
    std::uint64_t mark_bytes_ = 0;
    double rate_before_ = std::numeric_limits<double>::infinity();  // up to the mark
  };

 private:
  /// Drops the largest of the shares that are slow. False where none is.
  bool drop_one(const Share& asking, Clock::time_point now);

  const Limits limits_;
  std::mutex mutex_;
  std::uint64_t used_bytes_ = 0;
  std::unordered_set<Share*> shares_;
};

}  // namespace gauntlet::server::inline http
