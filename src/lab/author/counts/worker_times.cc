#include "lab/author/counts/worker_times.h"

#include <algorithm>

#include "core/os/threads.h"
#include "lab/author/lab_counts.h"

namespace gauntlet::lab::inline author::inline counts {

WorkerTimes::WorkerTimes(ThreadPool* pool)
    : pool_(pool), ends_(static_cast<std::size_t>(pool->size())) {}

void WorkerTimes::run(const std::function<void(int worker)>& task) {
  const auto begin = Clock::now();
  pool_->run([&](int worker) {
    task(worker);
    ends_[static_cast<std::size_t>(worker)].at = Clock::now();
  });
  double last = 0, sum = 0;
  for (const End& end : ends_) {
    const double time = std::chrono::duration<double>(end.at - begin).count();
    last = std::max(last, time);
    sum += time;
  }
  last_s_ += last;
  mean_s_ += sum / static_cast<double>(ends_.size());
}

Count last_worker(const std::shared_ptr<WorkerTimes>& times) {
  return LabCounts::make(
      "last_worker", [times] { return times->last_s_; }, [times] { return times->mean_s_; });
}

}  // namespace gauntlet::lab::inline author::inline counts
