#include "lab/author/counts/shared_counters.h"

#include "lab/author/lab_counts.h"

namespace gauntlet::lab::inline author::inline counts {

Count atomic_additions(const std::shared_ptr<SharedCounters>& counters) {
  return LabCounts::make("atomic_additions", [counters] {
    return static_cast<double>(counters->additions_.load(std::memory_order_relaxed));
  });
}

}  // namespace gauntlet::lab::inline author::inline counts
