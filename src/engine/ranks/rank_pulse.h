// RankPulse: what each rank has done so far, and that it is still there, asked by rank 0 between
// steps.
#pragma once
#include <chrono>
#include <cstdint>
#include <functional>
#include <mutex>
#include <vector>

namespace gauntlet::engine::inline on_ranks {

struct RankCounters {
  std::int64_t steps = 0;
  std::int64_t sent_bytes = 0;
  double waited_s = 0;  // for other ranks, once there was work
  std::int64_t weight_bytes = 0;
  std::int64_t kv_bytes = 0;  // of all pages, which take memory as they come into use
};

class RankPulse {
 public:
  explicit RankPulse(double every_s = 1) : every_(every_s) {}

  /// Of all ranks, as they last said; empty before the first beat. From any thread.
  std::vector<RankCounters> counters() const;

  /// Of the engine's thread, between steps. Throws RankFailure where a rank does not answer.
  void beat();
  void beat_if_due();
  /// How rank 0 asks; none: there is nobody to ask any more.
  void ask_by(std::function<std::vector<RankCounters>()> ask) { ask_ = std::move(ask); }

 private:
  using Clock = std::chrono::steady_clock;

  const std::chrono::duration<double> every_;
  std::function<std::vector<RankCounters>()> ask_;
  Clock::time_point last_;
  mutable std::mutex mutex_;
  std::vector<RankCounters> counters_;
};

}  // namespace gauntlet::engine::inline on_ranks
