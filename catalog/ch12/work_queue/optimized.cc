// Queues: every worker takes a few items at a time of what is left of its range, and half of what
// another has left when it has none.
#include <memory>

#include "catalog/ch12/work_queue/pair.h"
#include "catalog/ch12/work_queue/shared_ranges.h"
#include "core/os/threads.h"
#include "lab/author/counts/worker_times.h"

namespace gauntlet::ch12::work_queue::cpu {
namespace {

constexpr std::uint32_t kItems = 8;  // taken at a time

}  // namespace

lab::Side optimized(const Params& p, const lab::Cpu& cpu) {
  const auto times = std::make_shared<lab::WorkerTimes>(cpu.pool);
  const int workers = cpu.pool->size();
  const auto ranges = std::make_shared<SharedRanges>(workers);
  lab::Side side = lab::counted(lab::last_worker(times), [p, times, ranges] {
    ranges->reset(p.items);
    times->run([&](int worker) {
      while (const auto taken = ranges->take(worker, kItems)) {
        for (std::int64_t item = taken->begin; item < taken->end; ++item) {
          p.out[item] = continue_sequence(p, item);
        }
      }
    });
  });
  side.facts = {{"threads", static_cast<double>(workers)}};
  return side;
}

}  // namespace gauntlet::ch12::work_queue::cpu
