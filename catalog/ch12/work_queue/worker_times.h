// How evenly the workers of a pool end.
#pragma once
#include <algorithm>
#include <chrono>
#include <functional>
#include <memory>
#include <vector>

#include "core/os/threads.h"
#include "lab/author/counted.h"

namespace gauntlet::ch12::work_queue {

/// Runs tasks on a pool, and takes the time until each of its workers is done.
class WorkerTimes {
 public:
  explicit WorkerTimes(ThreadPool* pool) : pool_(pool), ends_(pool->size()) {}

  void run(const std::function<void(int worker)>& task) {
    const auto begin = Clock::now();
    pool_->run([&](int worker) {
      task(worker);
      ends_[worker].at = Clock::now();
    });
    double last = 0, sum = 0;
    for (const End& end : ends_) {
      const double time = std::chrono::duration<double>(end.at - begin).count();
      last = std::max(last, time);
      sum += time;
    }
    last_ += last;
    mean_ += sum / static_cast<double>(ends_.size());
  }

  double last() const { return last_; }
  double mean() const { return mean_; }

 private:
  using Clock = std::chrono::steady_clock;
  struct alignas(64) End {
    Clock::time_point at;
  };

  ThreadPool* pool_;
  std::vector<End> ends_;  // of the latest run
  double last_ = 0;        // seconds until the last worker was done, of all runs
  double mean_ = 0;        // and until they were done on average
};

/// "last_worker": time until the last worker is done per time until they are done on average.
inline lab::Count last_worker(const std::shared_ptr<WorkerTimes>& times) {
  return {.name = "last_worker",
          .total = [times] { return times->last(); },
          .per = [times] { return times->mean(); }};
}

}  // namespace gauntlet::ch12::work_queue
