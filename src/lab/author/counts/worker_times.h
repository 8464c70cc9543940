// How evenly the workers of a pool end: tasks that are run through this.
#pragma once
#include <chrono>
#include <functional>
#include <memory>
#include <vector>

#include "lab/author/counted.h"

namespace gauntlet::lab::inline author::inline counts {

/// Runs tasks on a pool, and takes the time until each of its workers is done.
class WorkerTimes {
 public:
  explicit WorkerTimes(ThreadPool* pool);

  void run(const std::function<void(int worker)>& task);

 private:
  friend Count last_worker(const std::shared_ptr<WorkerTimes>& times);

  using Clock = std::chrono::steady_clock;
  struct alignas(64) End {
    Clock::time_point at;
  };

  ThreadPool* pool_;
  std::vector<End> ends_;  // of the latest run
  double last_s_ = 0;      // until the last worker was done, of all runs
  double mean_s_ = 0;      // and until they were done on average
};

/// "last_worker": time until the last worker is done per time until they are done on average. 1:
/// all end together, however much of a CPU each of them was given.
Count last_worker(const std::shared_ptr<WorkerTimes>& times);

}  // namespace gauntlet::lab::inline author::inline counts
